#include <algorithm>
#include <type_traits>

#include "core/backend/cpu/parallel.h"
#include "core/ops/pool/windows.h"

namespace ddp {
namespace {

// Channels compared side by side. Loops of 16 iterations or fewer would be unrolled into scalar
// code with branches.
constexpr std::int64_t kLanes = 32;

/// The window of one pooled pixel: the rows and columns of `image` (one sample) that are inside it.
template <class T>
struct Window {
  const T* image;
  std::int64_t h, w;  ///< first tap, possibly outside
  Range rows, columns;
};

/// y and place of `count` <= kLanes channels from channel `c` on. The place is kept as wide as the
/// element while it is searched, since the compiler makes vectors of selects only for elements of
/// one width.
template <class T>
inline void pool_channels(const Window<T>& window, const PoolGeometry& g, std::int64_t c,
                          std::int64_t count, T* y, std::uint8_t* place) {
  using Index = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  const auto tap = [&](std::int64_t r, std::int64_t s) {
    return window.image + ((window.h + r) * g.width + window.w + s) * g.channels + c;
  };
  T best[kLanes];
  Index where[kLanes];
  const T* first = tap(window.rows.begin, window.columns.begin);
  for (std::int64_t i = 0; i < count; ++i) {
    best[i] = first[i];
    where[i] = static_cast<Index>(window.rows.begin * g.kernel + window.columns.begin);
  }
  for (std::int64_t r = window.rows.begin; r < window.rows.end; ++r)
    for (std::int64_t s = window.columns.begin; s < window.columns.end; ++s) {
      const T* x = tap(r, s);
      const auto here = static_cast<Index>(r * g.kernel + s);
      for (std::int64_t i = 0; i < count; ++i) {
        const bool larger = (x[i] > best[i]) | (x[i] != x[i]);  // NaN differs from itself
        where[i] = larger ? here : where[i];
        best[i] = larger ? x[i] : best[i];
      }
    }
  for (std::int64_t i = 0; i < count; ++i) {
    y[i] = best[i];
    place[i] = static_cast<std::uint8_t>(where[i]);
  }
}

/// y and place of all channels of one pooled pixel.
template <class T>
void pool_pixel(const Window<T>& window, const PoolGeometry& g, T* y, std::uint8_t* place) {
  std::int64_t c = 0;
  for (; c + kLanes <= g.channels; c += kLanes)
    pool_channels(window, g, c, kLanes, y + c, place + c);
  if (c < g.channels) pool_channels(window, g, c, g.channels - c, y + c, place + c);
}

template <class T>
Kernel forward(const PoolGeometry& g, int threads) {
  return {.run = [g, threads](const KernelArgs& args) {
    const T* x = args.inputs[0].as<T>();
    T* y = args.outputs[0].as<T>();
    std::uint8_t* place = args.outputs[1].as<std::uint8_t>();
    cpu::parallel_for(
        threads, g.samples * g.pooled_height, [&](std::int64_t begin, std::int64_t end, int) {
          for (std::int64_t row = begin; row < end; ++row) {
            const T* image = x + row / g.pooled_height * g.height * g.width * g.channels;
            const std::int64_t h = row % g.pooled_height * g.stride - g.pad;
            const Range rows = taps_inside(h, g.kernel, g.height);
            for (std::int64_t ow = 0; ow < g.pooled_width; ++ow) {
              const std::int64_t w = ow * g.stride - g.pad;
              const std::int64_t out = (row * g.pooled_width + ow) * g.channels;
              pool_pixel(Window<T>{image, h, w, rows, taps_inside(w, g.kernel, g.width)}, g,
                         y + out, place + out);
            }
          }
        });
  }};
}

// Gathers: each element of dx adds up the dy of the windows whose maximum it was, so that threads
// never share a result and each element is written in one place.
template <class T>
Kernel backward(const PoolGeometry& g, int threads) {
  return {.run = [g, threads](const KernelArgs& args) {
    const T* dy = args.inputs[0].as<T>();
    const std::uint8_t* place = args.inputs[1].as<std::uint8_t>();
    T* dx = args.outputs[0].as<T>();
    cpu::parallel_for(
        threads, g.samples * g.height, [&](std::int64_t begin, std::int64_t end, int) {
          for (std::int64_t row = begin; row < end; ++row) {
            const std::int64_t n = row / g.height, h = row % g.height;
            const Range rows = windows_over(h, g, g.pooled_height);
            for (std::int64_t w = 0; w < g.width; ++w) {
              const Range columns = windows_over(w, g, g.pooled_width);
              T* __restrict out = dx + (row * g.width + w) * g.channels;
              std::fill_n(out, g.channels, T{0});
              for (std::int64_t oh = rows.begin; oh < rows.end; ++oh)
                for (std::int64_t ow = columns.begin; ow < columns.end; ++ow) {
                  const std::int64_t window =
                      ((n * g.pooled_height + oh) * g.pooled_width + ow) * g.channels;
                  const T* __restrict gradient = dy + window;
                  const std::uint8_t* __restrict from = place + window;
                  const std::int64_t r = h + g.pad - oh * g.stride, s = w + g.pad - ow * g.stride;
                  const auto here = static_cast<std::uint8_t>(r * g.kernel + s);
                  for (std::int64_t c = 0; c < g.channels; ++c)
                    out[c] += from[c] == here ? gradient[c] : T{0};
                }
            }
          }
        });
  }};
}

Kernel max_pool_factory(const OpSignature& s, const KernelContext& context) {
  const PoolGeometry g = pool_geometry(s.inputs[0].shape, s.attributes);
  return s.inputs[0].dtype == DType::kF64 ? forward<double>(g, context.threads)
                                          : forward<float>(g, context.threads);
}

Kernel max_pool_backward_factory(const OpSignature& s, const KernelContext& context) {
  const PoolGeometry g = pool_geometry(s.outputs[0].shape, s.attributes);
  return s.inputs[0].dtype == DType::kF64 ? backward<double>(g, context.threads)
                                          : backward<float>(g, context.threads);
}

DDP_REGISTER_CPU_KERNEL("max_pool", max_pool_factory);
DDP_REGISTER_CPU_KERNEL("max_pool_backward", max_pool_backward_factory);

}  // namespace
}  // namespace ddp
