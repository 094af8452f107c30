#include "core/ops/pool/pool_cuda.cuh"

namespace ddp {
namespace {

using namespace cuda;
using pool::Geometry;
using pool::Place;

/// A pack of sums, row by row, which keeps the rounding error of large windows small.
template <class T, int N, class At>
__device__ void store_mean(BasicRange<int> rows, BasicRange<int> columns, int kernel, const At& at,
                           T* mean) {
  float sum[N] = {};
  for (int i = rows.begin; i < rows.end; ++i) {
    float row[N] = {};
    for (int j = columns.begin; j < columns.end; ++j) {
      const auto pack = load<T, N>(at(i, j));
      for (int e = 0; e < N; ++e) row[e] += to_float(pack.element[e]);
    }
    for (int e = 0; e < N; ++e) sum[e] += row[e];
  }
  const float window = static_cast<float>(kernel) * static_cast<float>(kernel);
  Pack<T, N> result;
  for (int e = 0; e < N; ++e) result.element[e] = from_float<T>(sum[e] / window);
  store(mean, result);
}

template <class T, int N>
struct Forward {
  Geometry g;
  const T* x;
  T* y;

  __device__ void operator()(const Place& at) const {
    const int h = at.h * g.step - g.pad, w = at.w * g.step - g.pad;
    store_mean<T, N>(
        taps_inside(h, g.kernel, g.height), taps_inside(w, g.kernel, g.width), g.kernel,
        [&](int r, int s) { return x + g.image(at.n, h + r, w + s) + at.c; },
        y + g.pooled(at.n, at.h, at.w) + at.c);
  }
};

template <class T, int N>
struct Backward {
  Geometry g;
  const T* dy;
  T* dx;

  __device__ void operator()(const Place& at) const {
    store_mean<T, N>(
        windows_over(at.h, g, g.pooled_height), windows_over(at.w, g, g.pooled_width), g.kernel,
        [&](int h, int w) { return dy + g.pooled(at.n, h, w) + at.c; },
        dx + g.image(at.n, at.h, at.w) + at.c);
  }
};

template <class T, int N>
Kernel forward(const PoolGeometry& g, const Device& device) {
  return {.run = [g, &device, geometry = Geometry(g)](const KernelArgs& args) {
    const auto from = [&](std::int64_t sample) {
      return Forward<T, N>{
          geometry, args.inputs[0].as<T>() + sample * g.height * g.width * g.channels,
          args.outputs[0].as<T>() + sample * g.pooled_height * g.pooled_width * g.channels};
    };
    pool::launch_gather<N>(g, g.pooled_height, g.pooled_width, device, from, stream_of(args));
  }};
}

template <class T, int N>
Kernel backward(const PoolGeometry& g, const Device& device) {
  return {.run = [g, &device, geometry = Geometry(g)](const KernelArgs& args) {
    const auto from = [&](std::int64_t sample) {
      return Backward<T, N>{
          geometry, args.inputs[0].as<T>() + sample * g.pooled_height * g.pooled_width * g.channels,
          args.outputs[0].as<T>() + sample * g.height * g.width * g.channels};
    };
    pool::launch_gather<N>(g, g.height, g.width, device, from, stream_of(args));
  }};
}

Kernel avg_pool_factory(const OpSignature& s, const KernelContext& context) {
  const PoolGeometry g = pool_geometry(s.inputs[0].shape, s.attributes);
  return with_type(s.inputs[0].dtype, [&](auto type) {
    using T = decltype(type);
    return g.channels % kPack<T> == 0 ? forward<T, kPack<T>>(g, *context.gpu)
                                      : forward<T, 1>(g, *context.gpu);
  });
}

Kernel avg_pool_backward_factory(const OpSignature& s, const KernelContext& context) {
  const PoolGeometry g = pool_geometry(s.outputs[0].shape, s.attributes);
  return with_type(s.inputs[0].dtype, [&](auto type) {
    using T = decltype(type);
    return g.channels % kPack<T> == 0 ? backward<T, kPack<T>>(g, *context.gpu)
                                      : backward<T, 1>(g, *context.gpu);
  });
}

DDP_REGISTER_CUDA_KERNEL("avg_pool", avg_pool_factory);
DDP_REGISTER_CUDA_KERNEL("avg_pool_backward", avg_pool_backward_factory);

}  // namespace
}  // namespace ddp
