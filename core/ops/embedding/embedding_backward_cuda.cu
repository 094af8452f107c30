// A block owns a few rows of the table, in a tile of features, and keeps their sums in shared
// memory. It reads all ids in their order, lists those that pick one of its rows, and adds their
// gradients: no atomics, no sorting, and rows that nobody picks become zero in the same pass. Where
// the table is too small to give all multiprocessors a block, teams of one block share its ids, and
// their sums are added in their order.
#include <limits>

#include "core/ops/row_grid.cuh"

namespace ddp {
namespace {

using namespace cuda;

constexpr int kIdsPerThread = 8;  // that a block reads before it adds what it found
constexpr int kBatch = 4;         // gradients that a thread loads before it adds them
constexpr int kMostThreads = 256;
constexpr int kSumsBytes = 36 << 10;

struct Table {
  std::int64_t ids, entries, features;
  int rows;  ///< of a block
};

/// An id that picks a row of this block: its place among the ids that were read, and the row.
struct Match {
  std::uint16_t place, row;
};

/// Lists the ids from `begin` on, as many as the block reads at once, that pick rows [first, first
/// + rows), in their order; returns how many. Every thread must call it.
__device__ int list_matches(const std::int32_t* ids, std::int64_t begin, std::int64_t end,
                            std::int64_t first, std::uint32_t rows, Match* matches) {
  __shared__ int found[kMostThreads / kWarp];
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
  const unsigned lane = thread % kWarp, warp = thread / kWarp;
  const unsigned warps = blockDim.x * blockDim.y / kWarp;
  const unsigned place = warp * kWarp * kIdsPerThread + lane;
  std::uint32_t row[kIdsPerThread];
#pragma unroll
  for (int k = 0; k < kIdsPerThread; ++k) {
    const std::int64_t i = begin + place + k * kWarp;
    // Ids below 0 become larger than any row.
    row[k] = i < end ? static_cast<std::uint32_t>(ids[i]) - static_cast<std::uint32_t>(first)
                     : std::numeric_limits<std::uint32_t>::max();
  }
  bool any = false;
#pragma unroll
  for (int k = 0; k < kIdsPerThread; ++k) any |= row[k] < rows;
  if (__syncthreads_or(any) == 0) return 0;

  unsigned mask[kIdsPerThread];
  int count = 0;
#pragma unroll
  for (int k = 0; k < kIdsPerThread; ++k) {
    mask[k] = __ballot_sync(0xFFFFFFFFU, row[k] < rows);
    count += __popc(mask[k]);
  }
  if (lane == 0) found[warp] = count;
  __syncthreads();
  int at = 0, total = 0;
  for (unsigned other = 0; other < warps; ++other) {
    if (other == warp) at = total;
    total += found[other];
  }
#pragma unroll
  for (int k = 0; k < kIdsPerThread; ++k) {
    if (row[k] < rows)
      matches[at + __popc(mask[k] & ((1U << lane) - 1))] = {
          static_cast<std::uint16_t>(place + k * kWarp), static_cast<std::uint16_t>(row[k])};
    at += __popc(mask[k]);
  }
  __syncthreads();
  return total;
}

/// x of the grid are groups of rows, y are tiles of features; y of the block are teams. `sums` is
/// [teams, rows, N, packs of the tile], and a thread meets no other in it until the end.
template <class T, int N>
__global__ void __launch_bounds__(kMostThreads)
    sum_kernel(Table t, const std::int32_t* ids, const T* dy, T* dw) {
  extern __shared__ float sums[];
  __shared__ Match matches[kMostThreads * kIdsPerThread];
  const int lane = static_cast<int>(threadIdx.x), lanes = static_cast<int>(blockDim.x);
  const int team = static_cast<int>(threadIdx.y), teams = static_cast<int>(blockDim.y);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * t.rows;
  const int rows = static_cast<int>(t.entries - first < t.rows ? t.entries - first : t.rows);
  const std::int64_t d = (static_cast<std::int64_t>(blockIdx.y) * lanes + lane) * N;
  const auto sum_of = [&](int of_team, int row, int j) -> float& {
    return sums[((of_team * t.rows + row) * N + j) * lanes + lane];
  };
  for (int row = 0; row < rows; ++row)
    for (int j = 0; j < N; ++j) sum_of(team, row, j) = 0;

  const std::int64_t chunk = static_cast<std::int64_t>(lanes) * teams * kIdsPerThread;
  for (std::int64_t begin = 0; begin < t.ids; begin += chunk) {
    const int count =
        list_matches(ids, begin, t.ids, first, static_cast<std::uint32_t>(rows), matches);
    if (d >= t.features) continue;
    for (int m = team; m < count; m += kBatch * teams) {
      Pack<T, N> gradient[kBatch];
#pragma unroll
      for (int b = 0; b < kBatch; ++b)
        if (m + b * teams < count)
          gradient[b] = load<T, N>(dy + (begin + matches[m + b * teams].place) * t.features + d);
#pragma unroll
      for (int b = 0; b < kBatch; ++b)
        if (m + b * teams < count)
          for (int j = 0; j < N; ++j)
            sum_of(team, matches[m + b * teams].row, j) += to_float(gradient[b].element[j]);
    }
  }

  __syncthreads();
  if (d >= t.features) return;
  for (int row = team; row < rows; row += teams) {
    Pack<T, N> result;
    for (int j = 0; j < N; ++j) {
      float sum = 0;
      for (int other = 0; other < teams; ++other) sum += sum_of(other, row, j);
      result.element[j] = from_float<T>(sum);
    }
    store(dw + (first + row) * t.features + d, result);
  }
}

template <class T, int N>
Kernel backward(Table t, const Device& gpu) {
  const auto parts = [](std::int64_t n, std::int64_t size) { return (n + size - 1) / size; };
  const std::int64_t packs = t.features / N, enough = 2 * gpu.multiprocessors();
  const auto most_rows = [](std::int64_t threads) {
    return kSumsBytes / (threads * N * static_cast<std::int64_t>(sizeof(float)));
  };
  std::int64_t lanes = std::min<std::int64_t>(parts(packs, kWarp) * kWarp, kMostThreads);
  std::int64_t teams = 1, rows = most_rows(lanes);
  if (parts(t.entries, rows) * parts(packs, lanes) < enough) {
    lanes = kWarp;
    teams = kMostThreads / kWarp;
    rows = std::clamp<std::int64_t>(t.entries * parts(packs, lanes) / enough, 1,
                                    most_rows(lanes * teams));
  }
  t.rows = static_cast<int>(rows);
  const dim3 grid(static_cast<unsigned>(parts(t.entries, rows)),
                  static_cast<unsigned>(parts(packs, lanes)));
  const dim3 block(static_cast<unsigned>(lanes), static_cast<unsigned>(teams));
  const auto shared = static_cast<std::size_t>(lanes * teams * rows * N) * sizeof(float);
  return {.run = [=](const KernelArgs& args) {
    sum_kernel<T, N><<<grid, block, shared, stream_of(args)>>>(
        t, args.inputs[0].as<std::int32_t>(), args.inputs[1].as<T>(), args.outputs[0].as<T>());
    check_launch("embedding_backward");
  }};
}

Kernel embedding_backward_factory(const OpSignature& s, const KernelContext& context) {
  const Table table{s.inputs[0].elements(), s.outputs[0].shape[0], s.outputs[0].shape[1], 0};
  DDP_CHECK(table.entries <= std::numeric_limits<std::int32_t>::max(),
            "an embedding has {} entries, more than its ids can tell apart", table.entries);
  return with_packs(s.inputs[1].dtype, table.features, [&](auto type, auto pack) {
    return backward<decltype(type), decltype(pack)::value>(table, *context.gpu);
  });
}
DDP_REGISTER_CUDA_KERNEL("embedding_backward", embedding_backward_factory);

}  // namespace
}  // namespace ddp
