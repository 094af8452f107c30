// Matrix products on the GPU, by which matmul and linear compute: cuBLASLt where it has an
// algorithm, otherwise an own kernel, with what follows the product in the same pass where the
// library can do that. Sums are float.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/graph/op_definition.h"

namespace ddp {

/// c[i, m, n] = Σ_k a[i, m, k] b[i, k, n] with all matrices row-major and of one type, then bias
/// and relu. NaN passes relu.
struct MatrixProduct {
  DType dtype = DType::kF32;  ///< F32 or BF16
  std::int64_t matrices = 1, rows = 1, columns = 1, terms = 1;
  bool transpose_a = false, transpose_b = false;  ///< stored as [k, m], as [n, k]
  bool bias = false;                              ///< input 2 of the op, one element a column
  bool relu = false;
  std::size_t a = 0, b = 1;  ///< which inputs of the op they are; c is output 0
};

/// The kernel of an op that is this product.
Kernel matrix_product(const MatrixProduct& product, const KernelContext& context);

}  // namespace ddp
