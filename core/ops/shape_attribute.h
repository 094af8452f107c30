// A shape as an attribute of an op: the list "shape" of its extents. For ops whose output shape
// does not follow from their inputs.
#pragma once

#include <vector>

#include "core/graph/attributes.h"
#include "core/tensor/shape.h"

namespace ddp {

inline Attribute shape_attribute(const Shape& shape) {
  return std::vector<double>(shape.extents().begin(), shape.extents().end());
}

/// The shape that shape_attribute stored under "shape".
inline Shape shape_from(const Attributes& attributes) {
  const std::vector<double>& extents = attributes.list("shape");
  return Shape{std::vector<std::int64_t>(extents.begin(), extents.end())};
}

}  // namespace ddp
