// Sum of squares by one block of threads, in double and in an order that depends on the number of
// threads and elements only. Used by finish_step and lars on the GPU.
#pragma once

#include "core/backend/cuda/kernel.cuh"

namespace ddp::cuda {

inline constexpr int kNormThreads = 256;

/// Of x[0, n), on every thread. All kNormThreads threads of the block must call it.
__device__ inline double block_sum_of_squares(const float* x, std::int64_t n) {
  constexpr int kN = kPack<float>;
  const bool aligned = reinterpret_cast<std::uintptr_t>(x) % sizeof(Pack<float>) == 0;
  const std::int64_t packs = aligned ? n / kN : 0;
  const auto square = [](float value) {
    const double v = value;
    return v * v;
  };
  double sum = 0;
#pragma unroll 4
  for (std::int64_t i = threadIdx.x; i < packs; i += kNormThreads) {
    const auto pack = load(x + i * kN);
    for (int j = 0; j < kN; ++j) sum += square(pack.element[j]);
  }
  for (std::int64_t i = packs * kN + threadIdx.x; i < n; i += kNormThreads) sum += square(x[i]);
  return block_sum(sum);
}

}  // namespace ddp::cuda
