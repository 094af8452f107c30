#include "core/ops/pool/pool_cuda.cuh"

namespace ddp {
namespace {

using namespace cuda;
using pool::Geometry;
using pool::Place;

template <class T, int N>
struct Forward {
  Geometry g;
  const T* x;
  T* y;
  std::uint8_t* from;

  __device__ void operator()(const Place& at) const {
    const int h = at.h * g.step - g.pad, w = at.w * g.step - g.pad;
    const auto rows = taps_inside(h, g.kernel, g.height);
    const auto columns = taps_inside(w, g.kernel, g.width);
    float best[N];
    int where[N];
    bool first = true;
    for (int r = rows.begin; r < rows.end; ++r)
      for (int s = columns.begin; s < columns.end; ++s) {
        const auto tap = load<T, N>(x + g.image(at.n, h + r, w + s) + at.c);
        const int here = r * g.kernel + s;
        for (int j = 0; j < N; ++j) {
          const float value = to_float(tap.element[j]);
          if (first || value > best[j] || isnan(value)) {
            best[j] = value;
            where[j] = here;
          }
        }
        first = false;
      }
    Pack<T, N> largest;
    Pack<std::uint8_t, N> places;
    for (int j = 0; j < N; ++j) {
      largest.element[j] = from_float<T>(best[j]);
      places.element[j] = static_cast<std::uint8_t>(where[j]);
    }
    const std::int64_t out = g.pooled(at.n, at.h, at.w) + at.c;
    store(y + out, largest);
    store(from + out, places);
  }
};

template <class T, int N>
struct Backward {
  Geometry g;
  const T* dy;
  const std::uint8_t* from;
  T* dx;

  __device__ void operator()(const Place& at) const {
    const auto rows = windows_over(at.h, g, g.pooled_height);
    const auto columns = windows_over(at.w, g, g.pooled_width);
    float sum[N] = {};
    for (int h = rows.begin; h < rows.end; ++h)
      for (int w = columns.begin; w < columns.end; ++w) {
        const std::int64_t window = g.pooled(at.n, h, w) + at.c;
        const auto gradient = load<T, N>(dy + window);
        const auto places = load<std::uint8_t, N>(from + window);
        const int here = (at.h + g.pad - h * g.step) * g.kernel + at.w + g.pad - w * g.step;
        for (int j = 0; j < N; ++j)
          if (places.element[j] == here) sum[j] += to_float(gradient.element[j]);
      }
    Pack<T, N> result;
    for (int j = 0; j < N; ++j) result.element[j] = from_float<T>(sum[j]);
    store(dx + g.image(at.n, at.h, at.w) + at.c, result);
  }
};

template <class T, int N>
Kernel forward(const PoolGeometry& g, const Device& device) {
  return {.run = [g, &device, geometry = Geometry(g)](const KernelArgs& args) {
    const std::int64_t image = g.height * g.width * g.channels,
                       pooled = g.pooled_height * g.pooled_width * g.channels;
    const auto from = [&](std::int64_t sample) {
      return Forward<T, N>{geometry, args.inputs[0].as<T>() + sample * image,
                           args.outputs[0].as<T>() + sample * pooled,
                           args.outputs[1].as<std::uint8_t>() + sample * pooled};
    };
    pool::launch_gather<N>(g, g.pooled_height, g.pooled_width, device, from, stream_of(args));
  }};
}

template <class T, int N>
Kernel backward(const PoolGeometry& g, const Device& device) {
  return {.run = [g, &device, geometry = Geometry(g)](const KernelArgs& args) {
    const std::int64_t image = g.height * g.width * g.channels,
                       pooled = g.pooled_height * g.pooled_width * g.channels;
    const auto from = [&](std::int64_t sample) {
      return Backward<T, N>{geometry, args.inputs[0].as<T>() + sample * pooled,
                            args.inputs[1].as<std::uint8_t>() + sample * pooled,
                            args.outputs[0].as<T>() + sample * image};
    };
    pool::launch_gather<N>(g, g.height, g.width, device, from, stream_of(args));
  }};
}

Kernel max_pool_factory(const OpSignature& s, const KernelContext& context) {
  const PoolGeometry g = pool_geometry(s.inputs[0].shape, s.attributes);
  return with_type(s.inputs[0].dtype, [&](auto type) {
    using T = decltype(type);
    return g.channels % kPack<T> == 0 ? forward<T, kPack<T>>(g, *context.gpu)
                                      : forward<T, 1>(g, *context.gpu);
  });
}

Kernel max_pool_backward_factory(const OpSignature& s, const KernelContext& context) {
  const PoolGeometry g = pool_geometry(s.outputs[0].shape, s.attributes);
  return with_type(s.inputs[0].dtype, [&](auto type) {
    using T = decltype(type);
    return g.channels % kPack<T> == 0 ? backward<T, kPack<T>>(g, *context.gpu)
                                      : backward<T, 1>(g, *context.gpu);
  });
}

DDP_REGISTER_CUDA_KERNEL("max_pool", max_pool_factory);
DDP_REGISTER_CUDA_KERNEL("max_pool_backward", max_pool_backward_factory);

}  // namespace
}  // namespace ddp
