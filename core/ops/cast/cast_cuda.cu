#include "core/backend/cuda/kernel.cuh"

namespace ddp {
namespace {

using namespace cuda;

constexpr int kN = kPack<__nv_bfloat16>;

__global__ void cast_kernel(std::int64_t elements, const float* x, __nv_bfloat16* y) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (std::int64_t i = first; i < elements / kN; i += stride) {
    const auto wide = load<float, kN>(x + i * kN);
    Pack<__nv_bfloat16> rounded;
    for (int j = 0; j < kN; ++j) rounded.element[j] = from_float<__nv_bfloat16>(wide.element[j]);
    store(y + i * kN, rounded);
  }
  for (std::int64_t i = elements / kN * kN + first; i < elements; i += stride)
    y[i] = from_float<__nv_bfloat16>(x[i]);
}

Kernel cast_factory(const OpSignature& s, const KernelContext& context) {
  DDP_CHECK(s.inputs[0].dtype == DType::kF32 && s.outputs[0].dtype == DType::kBF16,
            "the GPU casts F32 to BF16 only, not {} to {}", name_of(s.inputs[0].dtype),
            name_of(s.outputs[0].dtype));
  constexpr int kThreads = 256;
  const std::int64_t elements = s.inputs[0].elements();
  const int blocks = grid_blocks(*context.gpu, (elements + kN - 1) / kN, kThreads);
  return {.run = [=](const KernelArgs& args) {
    cast_kernel<<<blocks, kThreads, 0, stream_of(args)>>>(elements, args.inputs[0].as<float>(),
                                                          args.outputs[0].as<__nv_bfloat16>());
    check_launch("cast");
  }};
}
DDP_REGISTER_CUDA_KERNEL("cast", cast_factory);

}  // namespace
}  // namespace ddp
