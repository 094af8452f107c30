#include "core/backend/cpu/parallel.h"
#include "core/ops/pool/windows.h"

namespace ddp {
namespace {

/// sum[c] = Σ pixel(i, j)[c] / divisor over i in rows and j in columns.
template <class T, class Pixel>
void sum_pixels(Range rows, Range columns, std::int64_t channels, T divisor, const Pixel& pixel,
                T* __restrict sum) {
  std::fill_n(sum, channels, T{0});
  for (std::int64_t i = rows.begin; i < rows.end; ++i)
    for (std::int64_t j = columns.begin; j < columns.end; ++j) {
      const T* __restrict from = pixel(i, j);
      for (std::int64_t c = 0; c < channels; ++c) sum[c] += from[c];
    }
  for (std::int64_t c = 0; c < channels; ++c) sum[c] /= divisor;
}

template <class T>
Kernel forward(const PoolGeometry& g, int threads) {
  return {.run = [g, threads](const KernelArgs& args) {
    const T* x = args.inputs[0].as<T>();
    T* y = args.outputs[0].as<T>();
    cpu::parallel_for(
        threads, g.samples * g.pooled_height, [&](std::int64_t begin, std::int64_t end, int) {
          for (std::int64_t row = begin; row < end; ++row) {
            const T* image = x + row / g.pooled_height * g.height * g.width * g.channels;
            const std::int64_t h = row % g.pooled_height * g.stride - g.pad;
            for (std::int64_t ow = 0; ow < g.pooled_width; ++ow) {
              const std::int64_t w = ow * g.stride - g.pad;
              const auto tap = [&](std::int64_t r, std::int64_t s) {
                return image + ((h + r) * g.width + w + s) * g.channels;
              };
              sum_pixels(taps_inside(h, g.kernel, g.height), taps_inside(w, g.kernel, g.width),
                         g.channels, static_cast<T>(g.kernel * g.kernel), tap,
                         y + (row * g.pooled_width + ow) * g.channels);
            }
          }
        });
  }};
}

template <class T>
Kernel backward(const PoolGeometry& g, int threads) {
  return {.run = [g, threads](const KernelArgs& args) {
    const T* dy = args.inputs[0].as<T>();
    T* dx = args.outputs[0].as<T>();
    cpu::parallel_for(
        threads, g.samples * g.height, [&](std::int64_t begin, std::int64_t end, int) {
          for (std::int64_t row = begin; row < end; ++row) {
            const T* pooled = dy + row / g.height * g.pooled_height * g.pooled_width * g.channels;
            const Range rows = windows_over(row % g.height, g, g.pooled_height);
            const auto window = [&](std::int64_t oh, std::int64_t ow) {
              return pooled + (oh * g.pooled_width + ow) * g.channels;
            };
            for (std::int64_t w = 0; w < g.width; ++w)
              sum_pixels(rows, windows_over(w, g, g.pooled_width), g.channels,
                         static_cast<T>(g.kernel * g.kernel), window,
                         dx + (row * g.width + w) * g.channels);
          }
        });
  }};
}

Kernel avg_pool_factory(const OpSignature& s, const KernelContext& context) {
  const PoolGeometry g = pool_geometry(s.inputs[0].shape, s.attributes);
  return s.inputs[0].dtype == DType::kF64 ? forward<double>(g, context.threads)
                                          : forward<float>(g, context.threads);
}
DDP_REGISTER_CPU_KERNEL("avg_pool", avg_pool_factory);

Kernel avg_pool_backward_factory(const OpSignature& s, const KernelContext& context) {
  const PoolGeometry g = pool_geometry(s.outputs[0].shape, s.attributes);
  return s.inputs[0].dtype == DType::kF64 ? backward<double>(g, context.threads)
                                          : backward<float>(g, context.threads);
}
DDP_REGISTER_CPU_KERNEL("avg_pool_backward", avg_pool_backward_factory);

}  // namespace
}  // namespace ddp
