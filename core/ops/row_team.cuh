// Teams of threads that share the rows of a matrix: a warp has a row, or a block where rows are
// longer. Up to kKept elements a thread stay in registers, so that memory is touched once; longer
// rows are read again, from the cache. Kernels that need a sum or an order over a row use it.
// Included by .cu files only.
#pragma once

#include "core/ops/row_grid.cuh"
#include "core/ops/rows.h"

namespace ddp::cuda {

/// `Threads` is a warp or the block. A thread has every Threads-th pack of N elements of a row.
/// Blocks are of kThreads threads in x; the threads of a team go through the same rows, and all of
/// them must call the reductions.
template <int Threads, int N, bool Kept>
struct RowTeam {
  static constexpr int kThreads = RowGrid::kThreads;
  static_assert(Threads == kWarp || Threads == kThreads);
  static constexpr int kN = N;
  static constexpr int kKept = 32;
  static constexpr bool kIsKept = Kept;
  static constexpr int kTeamThreads = Threads;
  static constexpr int kRows = kThreads / Threads;     ///< of a block at a time
  static constexpr int kPacks = Kept ? kKept / N : 1;  ///< that a thread has room for

  static const char* name() {
    return Threads == kWarp ? "warp" : Kept ? "block" : "block rereading its row";
  }
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % Threads; }
  __device__ static std::int64_t first_row() {
    return static_cast<std::int64_t>(blockIdx.x) * kRows + threadIdx.x / Threads;
  }
  __device__ static std::int64_t row_stride() {
    return static_cast<std::int64_t>(gridDim.x) * kRows;
  }

  /// Calls f(place, column) for each pack of this thread; places are constants in [0, kPacks), all
  /// 0 where no pack is kept.
  template <class F>
  __device__ static void for_each_pack(std::int64_t columns, const F& f) {
    const int first = lane() * N;
    if constexpr (Kept) {
#pragma unroll
      for (int i = 0; i < kPacks; ++i)
        if (first + i * Threads * N < columns) f(i, std::int64_t{first + i * Threads * N});
    } else {
      for (std::int64_t column = first; column < columns; column += Threads * N) f(0, column);
    }
  }

  /// Of the values of all threads of the team, on each of them, in a fixed order. `combine` must be
  /// commutative.
  template <class S, class Combine>
  __device__ static S reduce(S value, const Combine& combine) {
    for (int offset = kWarp / 2; offset > 0; offset /= 2)
      value = combine(value, __shfl_xor_sync(0xFFFFFFFFU, value, offset));
    if constexpr (Threads > kWarp) {
      constexpr int kWarps = Threads / kWarp;
      __shared__ S partial[kWarps];
      __syncthreads();  // of an earlier call, all have read the result
      if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = value;
      __syncthreads();
      value = partial[threadIdx.x % kWarps];
      for (int offset = kWarps / 2; offset > 0; offset /= 2)
        value = combine(value, __shfl_xor_sync(0xFFFFFFFFU, value, offset));
    }
    return value;
  }
  template <class S>
  __device__ static S sum(S value) {
    return reduce(value, [](S a, S b) { return a + b; });
  }
  /// NaN is no candidate.
  __device__ static float largest(float value) {
    return reduce(value, [](float a, float b) { return fmaxf(a, b); });
  }
};

/// Calls f(T{}, RowTeam{}) with the element type of `dtype` and the team for rows of `columns`
/// elements.
template <class F>
auto with_team(DType dtype, std::int64_t columns, const F& f) {
  return with_packs(dtype, columns, [&](auto type, auto pack) {
    constexpr int kN = decltype(pack)::value;
    using Warp = RowTeam<kWarp, kN, true>;
    using Block = RowTeam<RowGrid::kThreads, kN, true>;
    if (columns <= Warp::kKept * Warp::kTeamThreads) return f(type, Warp{});
    if (columns <= Block::kKept * Block::kTeamThreads) return f(type, Block{});
    return f(type, RowTeam<RowGrid::kThreads, kN, false>{});
  });
}

/// Blocks of a kernel that goes through `rows` rows by teams.
template <class Team>
int team_blocks(const Device& gpu, std::int64_t rows) {
  return grid_blocks(gpu, rows * Team::kTeamThreads, Team::kThreads);
}

}  // namespace ddp::cuda
