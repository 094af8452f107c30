// Matrix products by an own kernel, for what the library has no algorithm for: right for every
// size, the same bytes in every run, much slower than the library.
#pragma once

#include "core/ops/matmul/matrix_product_cuda.h"

namespace ddp {

/// Without bias and relu, whatever `product` says of them.
Kernel tiled_product(const MatrixProduct& product, const KernelContext& context);

}  // namespace ddp
