// Matrix products by cuBLASLt: the algorithm is chosen while the plan is built, by timing the best
// guesses of the library's heuristic on the device, or as the first of them where runs must repeat
// byte for byte.
#pragma once

#include <optional>

#include "core/ops/matmul/matrix_product_cuda.h"

namespace ddp {

/// Nothing when cuBLASLt has no algorithm for `product`, its bias and its relu included. Equal
/// products of one device are tuned once in a process. The device must outlive the kernel. Throws
/// MemoryError when the device cannot hold operands to tune on.
std::optional<Kernel> cublaslt_product(const MatrixProduct& product, const KernelContext& context);

}  // namespace ddp
