#include "core/ops/flag_attribute.h"
#include "core/ops/matmul/matrix_product_cuda.h"

namespace ddp {
namespace {

Kernel matmul_factory(const OpSignature& s, const KernelContext& context) {
  const Shape& c = s.outputs[0].shape;
  const bool transpose_a = flag(s.attributes, "transpose_a");
  return matrix_product({.dtype = s.outputs[0].dtype,
                         .matrices = c.elements() / (c[-2] * c[-1]),
                         .rows = c[-2],
                         .columns = c[-1],
                         .terms = s.inputs[0].shape[transpose_a ? -2 : -1],
                         .transpose_a = transpose_a,
                         .transpose_b = flag(s.attributes, "transpose_b")},
                        context);
}
DDP_REGISTER_CUDA_KERNEL("matmul", matmul_factory);

}  // namespace
}  // namespace ddp
