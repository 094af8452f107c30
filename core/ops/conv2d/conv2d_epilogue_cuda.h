// What follows a convolution whose library kernel cannot do it itself: bias and relu in one pass.
#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"

#include <cuda_runtime_api.h>

namespace ddp {

/// y[i, k] = y[i, k] + bias[k], and 0 where that is negative if `relu`; NaN stays. `y` has its
/// channels innermost and is F32 or BF16, `bias` of the same type, or without data for none.
/// Enqueued on `stream`.
void add_bias_and_relu(const TensorView& y, const void* bias, bool relu, cudaStream_t stream);

}  // namespace ddp
