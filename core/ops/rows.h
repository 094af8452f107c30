// A tensor seen as a matrix whose rows are its innermost axis; all outer axes count the rows.
// Kernels that work on rows, or on columns over all rows, use it.
#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"

namespace ddp {

struct RowExtents {
  std::int64_t rows, columns;
};

/// Of a tensor [..., columns] with at least one axis and one column.
inline RowExtents row_extents(const TensorType& type) {
  return {type.elements() / type.shape[-1], type.shape[-1]};
}

}  // namespace ddp
