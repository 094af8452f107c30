// Rounding to another floating-point type: the copy of the parameters that mixed precision computes
// with. The plan adds it in front of the forward pass; it has no gradient.
#pragma once

#include "core/graph/attributes.h"
#include "core/tensor/dtype.h"

namespace ddp {

/// y = x rounded to `to` (nearest, ties to even), of the shape of x.
Attributes cast_attributes(DType to);

}  // namespace ddp
