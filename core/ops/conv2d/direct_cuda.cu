#include "core/ops/conv2d/direct_cuda.h"

#include <limits>

#include "core/backend/cuda/kernel.cuh"

namespace ddp {
namespace {

constexpr int kThreads = 256;

/// Extents that device code divides by, as 32-bit numbers.
struct Extents {
  int n, h, w, c, k, r, s, p, q, stride, pad;
};

Extents extents_of(const Conv2dGeometry& g) {
  for (const std::int64_t extent : {g.n, g.h, g.w, g.c, g.k, g.r, g.s, g.p, g.q, g.stride, g.pad})
    DDP_CHECK(extent < std::numeric_limits<int>::max() / 4, "a convolution has an extent of {}",
              extent);
  const auto narrow = [](std::int64_t extent) { return static_cast<int>(extent); };
  return {narrow(g.n), narrow(g.h), narrow(g.w), narrow(g.c),      narrow(g.k),  narrow(g.r),
          narrow(g.s), narrow(g.p), narrow(g.q), narrow(g.stride), narrow(g.pad)};
}

/// Blocks of a kernel with one thread an element, in a grid of x and y.
dim3 grid_of(std::int64_t elements) {
  constexpr std::int64_t kWidth = 1 << 20;
  const std::int64_t blocks = (elements + kThreads - 1) / kThreads;
  if (blocks <= kWidth) return {static_cast<unsigned>(blocks)};
  return {kWidth, static_cast<unsigned>((blocks + kWidth - 1) / kWidth)};
}
__device__ inline std::int64_t element_of_thread() {
  return (static_cast<std::int64_t>(blockIdx.y) * gridDim.x + blockIdx.x) * blockDim.x +
         threadIdx.x;
}

/// One thread an element of y, neighbours along K. Sums over C are added to the total one by one,
/// which keeps the rounding error of long sums small.
template <class T>
__global__ void forward_kernel(Extents g, std::int64_t elements, const T* x, const T* w,
                               const T* bias, bool relu, T* y) {
  const std::int64_t element = element_of_thread();
  if (element >= elements) return;
  const int k = static_cast<int>(element % g.k);
  const std::int64_t pixel = element / g.k, row = pixel / g.q;
  const int q = static_cast<int>(pixel % g.q), p = static_cast<int>(row % g.p);
  const std::int64_t n = row / g.p;
  float total = 0.0F;
  for (int r = 0; r < g.r; ++r) {
    const int h = p * g.stride + r - g.pad;
    if (h < 0 || h >= g.h) continue;
    for (int s = 0; s < g.s; ++s) {
      const int column = q * g.stride + s - g.pad;
      if (column < 0 || column >= g.w) continue;
      const T* from = x + ((n * g.h + h) * g.w + column) * g.c;
      const T* filter = w + ((static_cast<std::int64_t>(k) * g.r + r) * g.s + s) * g.c;
      float sum = 0.0F;
      for (int c = 0; c < g.c; ++c)
        sum = fmaf(cuda::to_float(from[c]), cuda::to_float(filter[c]), sum);
      total += sum;
    }
  }
  if (bias != nullptr) total += cuda::to_float(bias[k]);
  y[element] = cuda::from_float<T>(relu && total < 0.0F ? 0.0F : total);
}

/// One thread an element of dx, neighbours along C.
template <class T>
__global__ void data_kernel(Extents g, std::int64_t elements, const T* w, const T* dy, T* dx) {
  const std::int64_t element = element_of_thread();
  if (element >= elements) return;
  const int c = static_cast<int>(element % g.c);
  const std::int64_t pixel = element / g.c, row = pixel / g.w;
  const int column = static_cast<int>(pixel % g.w), h = static_cast<int>(row % g.h);
  const std::int64_t n = row / g.h, next_filter = static_cast<std::int64_t>(g.r) * g.s * g.c;
  float total = 0.0F;
  for (int r = 0; r < g.r; ++r) {
    const int down = h + g.pad - r, p = down / g.stride;
    if (down < 0 || down % g.stride != 0 || p >= g.p) continue;
    for (int s = 0; s < g.s; ++s) {
      const int right = column + g.pad - s, q = right / g.stride;
      if (right < 0 || right % g.stride != 0 || q >= g.q) continue;
      const T* gradient = dy + ((n * g.p + p) * g.q + q) * g.k;
      const T* filter = w + (static_cast<std::int64_t>(r) * g.s + s) * g.c + c;
      float sum = 0.0F;
      for (int k = 0; k < g.k; ++k)
        sum = fmaf(cuda::to_float(gradient[k]), cuda::to_float(filter[k * next_filter]), sum);
      total += sum;
    }
  }
  dx[element] = cuda::from_float<T>(total);
}

/// A block has one k, r, s and a tile of blockDim.x channels. Its rows of threads share the rows of
/// dy, sum along each row in float and over rows in double, and are added in their order.
template <class T>
__global__ void filter_kernel(Extents g, int tiles, const T* x, const T* dy, T* dw) {
  __shared__ double partial[kThreads];
  const std::int64_t tap = blockIdx.x / tiles;  // (k * R + r) * S + s
  const int c = static_cast<int>(blockIdx.x % tiles * blockDim.x + threadIdx.x);
  const int s = static_cast<int>(tap % g.s), r = static_cast<int>(tap / g.s % g.r);
  const std::int64_t k = tap / g.s / g.r;
  // Columns q whose column of x lies in the image.
  const int left = g.pad - s, right = g.w - 1 + g.pad - s;
  const int begin = left > 0 ? (left + g.stride - 1) / g.stride : 0;
  const int end = right < 0 ? 0 : min(g.q, right / g.stride + 1);
  double total = 0;
  if (c < g.c) {
    const std::int64_t rows = static_cast<std::int64_t>(g.n) * g.p;
    for (std::int64_t row = threadIdx.y; row < rows; row += blockDim.y) {
      const int h = static_cast<int>(row % g.p) * g.stride + r - g.pad;
      if (h < 0 || h >= g.h) continue;
      const T* image = x + ((row / g.p * g.h + h) * g.w + s - g.pad) * g.c + c;
      const T* gradient = dy + row * g.q * g.k + k;
      float sum = 0.0F;
      for (int q = begin; q < end; ++q)
        sum = fmaf(cuda::to_float(image[static_cast<std::int64_t>(q) * g.stride * g.c]),
                   cuda::to_float(gradient[static_cast<std::int64_t>(q) * g.k]), sum);
      total += sum;
    }
  }
  partial[threadIdx.y * blockDim.x + threadIdx.x] = total;
  __syncthreads();
  if (threadIdx.y > 0 || c >= g.c) return;
  for (unsigned i = 1; i < blockDim.y; ++i) total += partial[i * blockDim.x + threadIdx.x];
  dw[tap * g.c + c] = cuda::from_float<T>(static_cast<float>(total));
}

}  // namespace

Kernel direct_conv2d(const Conv2dGeometry& g, DType dtype, bool bias, bool relu) {
  return cuda::with_type(dtype, [&](auto type) -> Kernel {
    using T = decltype(type);
    const std::int64_t elements = g.n * g.p * g.q * g.k;
    return {.run = [=, e = extents_of(g), grid = grid_of(elements)](const KernelArgs& args) {
      forward_kernel<T><<<grid, kThreads, 0, cuda::stream_of(args)>>>(
          e, elements, args.inputs[0].as<T>(), args.inputs[1].as<T>(),
          bias ? args.inputs[2].as<T>() : nullptr, relu, args.outputs[0].as<T>());
      cuda::check_launch("conv2d");
    }};
  });
}

Kernel direct_conv2d_backward_data(const Conv2dGeometry& g, DType dtype) {
  return cuda::with_type(dtype, [&](auto type) -> Kernel {
    using T = decltype(type);
    const std::int64_t elements = g.n * g.h * g.w * g.c;
    return {.run = [=, e = extents_of(g), grid = grid_of(elements)](const KernelArgs& args) {
      data_kernel<T><<<grid, kThreads, 0, cuda::stream_of(args)>>>(
          e, elements, args.inputs[0].as<T>(), args.inputs[1].as<T>(), args.outputs[0].as<T>());
      cuda::check_launch("conv2d_backward_data");
    }};
  });
}

Kernel direct_conv2d_backward_filter(const Conv2dGeometry& g, DType dtype) {
  return cuda::with_type(dtype, [&](auto type) -> Kernel {
    using T = decltype(type);
    unsigned lanes = 1;
    while (lanes < cuda::kWarp && lanes < g.c) lanes *= 2;
    const std::int64_t tiles = (g.c + lanes - 1) / lanes, blocks = g.k * g.r * g.s * tiles;
    DDP_CHECK(blocks <= std::numeric_limits<int>::max(), "a convolution has {} filter elements",
              g.k * g.r * g.s * g.c);
    const dim3 block(lanes, kThreads / lanes);
    return {.run = [=, e = extents_of(g)](const KernelArgs& args) {
      filter_kernel<T><<<static_cast<unsigned>(blocks), block, 0, cuda::stream_of(args)>>>(
          e, static_cast<int>(tiles), args.inputs[0].as<T>(), args.inputs[1].as<T>(),
          args.outputs[0].as<T>());
      cuda::check_launch("conv2d_backward_filter");
    }};
  });
}

}  // namespace ddp
