#include <algorithm>

#include "core/backend/cpu/parallel.h"
#include "core/ops/pool/pool.h"

namespace ddp {
namespace {

/// Pixels of an image [N, H, W, C].
std::int64_t pixels(const Shape& image) { return image[1] * image[2]; }

template <class T>
Kernel forward(const Shape& image, int threads) {
  return {.run = [area = pixels(image), samples = image[0], channels = image[3],
                  threads](const KernelArgs& args) {
    const T* x = args.inputs[0].as<T>();
    T* y = args.outputs[0].as<T>();
    cpu::parallel_for(threads, samples, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t n = begin; n < end; ++n) {
        T* __restrict mean = y + n * channels;
        std::fill_n(mean, channels, T{0});
        for (std::int64_t p = 0; p < area; ++p) {
          const T* __restrict pixel = x + (n * area + p) * channels;
          for (std::int64_t c = 0; c < channels; ++c) mean[c] += pixel[c];
        }
        for (std::int64_t c = 0; c < channels; ++c) mean[c] /= static_cast<T>(area);
      }
    });
  }};
}

template <class T>
Kernel backward(const Shape& image, int threads) {
  return {.run = [area = pixels(image), samples = image[0], channels = image[3],
                  threads](const KernelArgs& args) {
    const T* dy = args.inputs[0].as<T>();
    T* dx = args.outputs[0].as<T>();
    cpu::parallel_for(threads, samples, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t n = begin; n < end; ++n)
        for (std::int64_t p = 0; p < area; ++p) {
          const T* __restrict gradient = dy + n * channels;
          T* __restrict pixel = dx + (n * area + p) * channels;
          for (std::int64_t c = 0; c < channels; ++c) pixel[c] = gradient[c] / static_cast<T>(area);
        }
    });
  }};
}

Kernel average_factory(const OpSignature& s, const KernelContext& context) {
  const Shape& image = s.inputs[0].shape;
  return s.inputs[0].dtype == DType::kF64 ? forward<double>(image, context.threads)
                                          : forward<float>(image, context.threads);
}

Kernel average_backward_factory(const OpSignature& s, const KernelContext& context) {
  const Shape& image = s.outputs[0].shape;
  return s.inputs[0].dtype == DType::kF64 ? backward<double>(image, context.threads)
                                          : backward<float>(image, context.threads);
}

DDP_REGISTER_CPU_KERNEL("global_average_pool", average_factory);
DDP_REGISTER_CPU_KERNEL("global_average_pool_backward", average_backward_factory);

}  // namespace
}  // namespace ddp
