#include "core/ops/flag_attribute.h"
#include "core/ops/matmul/matrix_product_cuda.h"

namespace ddp {
namespace {

// Inputs: x [N, K], w [M, K], and a bias [M] or none.
Kernel linear_factory(const OpSignature& s, const KernelContext& context) {
  const bool bias = s.inputs.size() > 2;
  return matrix_product({.dtype = s.inputs[0].dtype,
                         .rows = s.inputs[0].shape[0],
                         .columns = s.inputs[1].shape[0],
                         .terms = s.inputs[0].shape[1],
                         .transpose_b = true,
                         .bias = bias,
                         .relu = bias && flag(s.attributes, "relu")},
                        context);
}
DDP_REGISTER_CUDA_KERNEL("linear", linear_factory);

// dx = dy w. Inputs: w, dy.
Kernel linear_backward_data_factory(const OpSignature& s, const KernelContext& context) {
  return matrix_product({.dtype = s.inputs[0].dtype,
                         .rows = s.inputs[1].shape[0],
                         .columns = s.inputs[0].shape[1],
                         .terms = s.inputs[0].shape[0],
                         .a = 1,
                         .b = 0},
                        context);
}
DDP_REGISTER_CUDA_KERNEL("linear_backward_data", linear_backward_data_factory);

// dw = dyᵀ x. Inputs: x, dy.
Kernel linear_backward_weight_factory(const OpSignature& s, const KernelContext& context) {
  return matrix_product({.dtype = s.inputs[0].dtype,
                         .rows = s.inputs[1].shape[1],
                         .columns = s.inputs[0].shape[1],
                         .terms = s.inputs[0].shape[0],
                         .transpose_a = true,
                         .a = 1,
                         .b = 0},
                        context);
}
DDP_REGISTER_CUDA_KERNEL("linear_backward_weight", linear_backward_weight_factory);

}  // namespace
}  // namespace ddp
