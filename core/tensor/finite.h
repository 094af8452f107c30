// Whether a tensor in host memory holds numbers only: no NaN, no infinity. Those call it that look
// for what made a run diverge.
#pragma once

#include "core/tensor/tensor.h"

namespace ddp {

/// True for integers of any value.
bool all_finite(const TensorView& host);

}  // namespace ddp
