#include "core/backend/cuda/kernel.cuh"

namespace ddp {
namespace {

using namespace cuda;

template <class T>
__global__ void fill_kernel(std::int64_t elements, float value, T* y) {
  constexpr int kN = kPack<T>;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  Pack<T> pack;
  for (T& element : pack.element) element = from_float<T>(value);
  for (std::int64_t i = first; i < elements / kN; i += stride) store(y + i * kN, pack);
  for (std::int64_t i = elements / kN * kN + first; i < elements; i += stride)
    y[i] = pack.element[0];
}

Kernel fill_factory(const OpSignature& s, const KernelContext& context) {
  return with_type(s.outputs[0].dtype, [&](auto type) -> Kernel {
    using T = decltype(type);
    constexpr int kThreads = 256;
    const std::int64_t elements = s.outputs[0].elements();
    const auto value = static_cast<float>(s.attributes.real("value"));
    const int blocks = grid_blocks(*context.gpu, (elements + kPack<T> - 1) / kPack<T>, kThreads);
    return {.run = [=](const KernelArgs& args) {
      fill_kernel<<<blocks, kThreads, 0, stream_of(args)>>>(elements, value,
                                                            args.outputs[0].as<T>());
      check_launch("fill");
    }};
  });
}
DDP_REGISTER_CUDA_KERNEL("fill", fill_factory);

}  // namespace
}  // namespace ddp
