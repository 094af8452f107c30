#include "core/backend/cuda/kernel.cuh"

namespace ddp {
namespace {

struct Forward {
  __device__ float operator()(float x) const { return x < 0.0F ? 0.0F : x; }
};
struct Backward {
  __device__ float operator()(float dy, float y) const { return y <= 0.0F ? 0.0F : dy; }
};

Kernel relu_factory(const OpSignature& s, const KernelContext& context) {
  return cuda::elementwise<1, Forward>(s, context, "relu");
}
Kernel relu_backward_factory(const OpSignature& s, const KernelContext& context) {
  return cuda::elementwise<2, Backward>(s, context, "relu_backward");
}
DDP_REGISTER_CUDA_KERNEL("relu", relu_factory);
DDP_REGISTER_CUDA_KERNEL("relu_backward", relu_backward_factory);

}  // namespace
}  // namespace ddp
