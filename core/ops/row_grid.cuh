// Launches over the rows of a matrix: x of the grid are packs of a row, y are rows, so that kernels
// divide no index. Kernels of ops that need to know their row or column use it; those that do not
// are element-wise. Included by .cu files only.
#pragma once

#include <algorithm>

#include "core/backend/cuda/kernel.cuh"

namespace ddp::cuda {

/// Blocks are of 256 threads, whose x counts a power of two.
struct RowGrid {
  static constexpr int kThreads = 256;
  dim3 grid, block;
};

/// For rows of `packs` packs. A thread has about `packs_per_thread` packs of `rows_per_thread`
/// rows; kernels find them by the strides below. With one pack for each thread, all packs of a row
/// have their own: only the rows need a loop.
inline RowGrid row_grid(std::int64_t rows, std::int64_t packs, std::int64_t packs_per_thread = 1,
                        std::int64_t rows_per_thread = 1) {
  const auto parts = [](std::int64_t n, std::int64_t size, std::int64_t most) {
    return static_cast<unsigned>(std::clamp<std::int64_t>((n + size - 1) / size, 1, most));
  };
  std::int64_t lanes = 1;
  while (lanes < RowGrid::kThreads && lanes < packs &&
         (lanes < kWarp || lanes * rows < RowGrid::kThreads))
    lanes *= 2;
  const std::int64_t height = RowGrid::kThreads / lanes;
  return {.grid = dim3(parts(packs, lanes * packs_per_thread, 0x7FFFFFFF),
                       parts(rows, height * rows_per_thread, 65535)),
          .block = dim3(static_cast<unsigned>(lanes), static_cast<unsigned>(height))};
}

__device__ inline std::int64_t first_pack() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t pack_stride() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}
__device__ inline std::int64_t first_row() {
  return static_cast<std::int64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
}
__device__ inline std::int64_t row_stride() {
  return static_cast<std::int64_t>(gridDim.y) * blockDim.y;
}

/// Calls f(T{}, std::integral_constant<int, N>{}) with the element type of `dtype` and how many
/// elements of a row a thread loads at once: as many as 16 bytes hold where every row starts at a
/// multiple of that, otherwise one.
template <class F>
auto with_packs(DType dtype, std::int64_t columns, const F& f) {
  return with_type(dtype, [&](auto type) {
    constexpr int kN = kPack<decltype(type)>;
    if (columns % kN == 0) return f(type, std::integral_constant<int, kN>{});
    return f(type, std::integral_constant<int, 1>{});
  });
}

}  // namespace ddp::cuda
