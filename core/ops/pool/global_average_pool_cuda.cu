// A block has one sample and a tile of channels: its columns of threads are packs of channels, its
// rows share the pixels.
#include <algorithm>

#include "core/backend/cuda/kernel.cuh"
#include "core/ops/pool/pool.h"

namespace ddp {
namespace {

using namespace cuda;

constexpr int kThreads = 256;
constexpr int kRun = 32;             // pixels that a thread adds in float before it adds in double
constexpr int kPixelsPerThread = 8;  // of backward

template <class T, int N>
__global__ void forward_kernel(std::int64_t area, std::int64_t channels, unsigned tiles, const T* x,
                               T* y) {
  __shared__ double partial[kThreads * N];
  const std::int64_t n = blockIdx.x / tiles;
  const std::int64_t c =
      (static_cast<std::int64_t>(blockIdx.x % tiles) * blockDim.x + threadIdx.x) * N;
  double total[N] = {};
  if (c < channels) {
    const T* image = x + n * area * channels + c;
    for (std::int64_t p = threadIdx.y; p < area;) {
      float sum[N] = {};
      for (int i = 0; i < kRun && p < area; ++i, p += blockDim.y) {
        const auto pixel = load<T, N>(image + p * channels);
        for (int j = 0; j < N; ++j) sum[j] += to_float(pixel.element[j]);
      }
      for (int j = 0; j < N; ++j) total[j] += sum[j];
    }
  }
  for (int j = 0; j < N; ++j)
    partial[(j * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x] = total[j];
  __syncthreads();
  if (threadIdx.y > 0 || c >= channels) return;
  Pack<T, N> mean;
  for (int j = 0; j < N; ++j) {
    for (unsigned row = 1; row < blockDim.y; ++row)
      total[j] += partial[(j * blockDim.y + row) * blockDim.x + threadIdx.x];
    mean.element[j] = from_float<T>(static_cast<float>(total[j] / static_cast<double>(area)));
  }
  store(y + n * channels + c, mean);
}

/// y of the grid are strips of pixels.
template <class T, int N>
__global__ void backward_kernel(std::int64_t area, std::int64_t channels, unsigned tiles,
                                const T* dy, T* dx) {
  const std::int64_t n = blockIdx.x / tiles;
  const std::int64_t c =
      (static_cast<std::int64_t>(blockIdx.x % tiles) * blockDim.x + threadIdx.x) * N;
  if (c >= channels) return;
  auto share = load<T, N>(dy + n * channels + c);
  for (int j = 0; j < N; ++j)
    share.element[j] = from_float<T>(to_float(share.element[j]) / static_cast<float>(area));
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.y) * blockDim.y;
  for (std::int64_t p = static_cast<std::int64_t>(blockIdx.y) * blockDim.y + threadIdx.y; p < area;
       p += stride)
    store(dx + (n * area + p) * channels + c, share);
}

struct Launch {
  std::int64_t area, channels;
  unsigned tiles;
  dim3 grid, block;
};

Launch launch_of(const Shape& image, int pack, bool strips) {
  const std::int64_t area = image[1] * image[2], packs = image[3] / pack;
  unsigned lanes = 1;
  while (lanes < kWarp && lanes < packs) lanes *= 2;
  const std::int64_t tiles = (packs + lanes - 1) / lanes;
  DDP_CHECK(image[0] * tiles < std::int64_t{1} << 31, "{} samples of {} channels", image[0],
            image[3]);
  const unsigned rows = kThreads / lanes;
  const std::int64_t pixels = std::int64_t{rows} * kPixelsPerThread;
  const std::int64_t parts =
      strips ? std::min<std::int64_t>((area + pixels - 1) / pixels, 65535) : 1;
  return {area, image[3], static_cast<unsigned>(tiles),
          dim3(static_cast<unsigned>(image[0] * tiles), static_cast<unsigned>(parts)),
          dim3(lanes, rows)};
}

template <class T, int N>
Kernel forward(const Shape& image) {
  return {.run = [l = launch_of(image, N, false)](const KernelArgs& args) {
    forward_kernel<T, N><<<l.grid, l.block, 0, stream_of(args)>>>(
        l.area, l.channels, l.tiles, args.inputs[0].as<T>(), args.outputs[0].as<T>());
    check_launch("global_average_pool");
  }};
}

template <class T, int N>
Kernel backward(const Shape& image) {
  return {.run = [l = launch_of(image, N, true)](const KernelArgs& args) {
    backward_kernel<T, N><<<l.grid, l.block, 0, stream_of(args)>>>(
        l.area, l.channels, l.tiles, args.inputs[0].as<T>(), args.outputs[0].as<T>());
    check_launch("global_average_pool_backward");
  }};
}

Kernel average_factory(const OpSignature& s, const KernelContext&) {
  return with_type(s.inputs[0].dtype, [&](auto type) {
    using T = decltype(type);
    const Shape& image = s.inputs[0].shape;
    return image[3] % kPack<T> == 0 ? forward<T, kPack<T>>(image) : forward<T, 1>(image);
  });
}

Kernel average_backward_factory(const OpSignature& s, const KernelContext&) {
  return with_type(s.inputs[0].dtype, [&](auto type) {
    using T = decltype(type);
    const Shape& image = s.outputs[0].shape;
    return image[3] % kPack<T> == 0 ? backward<T, kPack<T>>(image) : backward<T, 1>(image);
  });
}

DDP_REGISTER_CUDA_KERNEL("global_average_pool", average_factory);
DDP_REGISTER_CUDA_KERNEL("global_average_pool_backward", average_backward_factory);

}  // namespace
}  // namespace ddp
