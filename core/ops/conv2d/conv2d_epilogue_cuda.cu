#include "core/ops/conv2d/conv2d_epilogue_cuda.h"

#include <algorithm>

#include "core/backend/cuda/kernel.cuh"

namespace ddp {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kRowsPerThread = 8;

/// A thread has N channels of every (gridDim.x * blockDim.y)-th row; y of the grid are tiles of
/// channels.
template <class T, int N>
__global__ void epilogue_kernel(std::int64_t rows, std::int64_t channels, const T* bias, bool relu,
                                T* y) {
  const std::int64_t k = (static_cast<std::int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * N;
  if (k >= channels) return;
  float shift[N] = {};
  if (bias != nullptr) {
    const auto pack = cuda::load<T, N>(bias + k);
    for (int j = 0; j < N; ++j) shift[j] = cuda::to_float(pack.element[j]);
  }
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
       row < rows; row += stride) {
    T* at = y + row * channels + k;
    auto pack = cuda::load<T, N>(at);
    for (int j = 0; j < N; ++j) {
      const float sum = cuda::to_float(pack.element[j]) + shift[j];
      pack.element[j] = cuda::from_float<T>(relu && sum < 0.0F ? 0.0F : sum);
    }
    cuda::store(at, pack);
  }
}

template <class T, int N>
void launch(const TensorView& y, const void* bias, bool relu, cudaStream_t stream) {
  const std::int64_t channels = y.shape()[-1], rows = y.type.elements() / channels;
  const std::int64_t packs = channels / N;
  unsigned lanes = 1;
  while (lanes < cuda::kWarp && lanes < packs) lanes *= 2;
  const dim3 block(lanes, kThreads / lanes);
  const std::int64_t strips = std::max<std::int64_t>(1, rows / (block.y * kRowsPerThread));
  const dim3 grid(static_cast<unsigned>(std::min<std::int64_t>(strips, 1 << 20)),
                  static_cast<unsigned>((packs + lanes - 1) / lanes));
  epilogue_kernel<T, N>
      <<<grid, block, 0, stream>>>(rows, channels, static_cast<const T*>(bias), relu, y.as<T>());
  cuda::check_launch("bias and relu");
}

}  // namespace

void add_bias_and_relu(const TensorView& y, const void* bias, bool relu, cudaStream_t stream) {
  cuda::with_type(y.type.dtype, [&](auto type) {
    using T = decltype(type);
    if (y.shape()[-1] % cuda::kPack<T> == 0)
      launch<T, cuda::kPack<T>>(y, bias, relu, stream);
    else
      launch<T, 1>(y, bias, relu, stream);
  });
}

}  // namespace ddp
