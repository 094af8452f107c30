// Bias and relu in one pass over memory: the op "bias", and what follows a product or a convolution
// whose library kernel cannot do it itself.
#pragma once

#include "core/tensor/tensor.h"

#include <cuda_runtime_api.h>

namespace ddp {

/// y[i, c] = x[i, c] + bias[c], and 0 where that is negative if `relu`; NaN stays. x and y have
/// their channels innermost, are F32 or BF16, and may be the same memory; `bias` is of the same
/// type, or null for none. Enqueued on `stream`.
void add_bias(const TensorView& x, const void* bias, bool relu, const TensorView& y,
              cudaStream_t stream);

}  // namespace ddp
