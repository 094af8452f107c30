// The element type of an output as the attribute "dtype", for ops whose inputs do not say it.
#pragma once

#include "core/graph/attributes.h"
#include "core/tensor/dtype.h"

namespace ddp {

/// The attribute, which has to name a floating-point type; ConfigError otherwise.
inline DType dtype_attribute(const Attributes& attributes) {
  const std::string& name = attributes.text("dtype");
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16})
    if (name == name_of(dtype)) return dtype;
  throw ConfigError("a tensor of type {} cannot be made here, only of F32, F64 or BF16", name);
}

}  // namespace ddp
