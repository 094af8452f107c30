// What the CUDA kernels of batch norm share: the launch, the walk of a thread over its rows, and
// two sums over the rows of each channel. Each block sums a strip of rows and leaves two numbers a
// channel; a warp of a second kernel adds those of a channel, in their order.
#pragma once

#include <algorithm>

#include "core/ops/batchnorm/extents.h"
#include "core/ops/packed.cuh"
#include "core/ops/resident_blocks.cuh"
#include "core/ops/row_grid.cuh"

namespace ddp::cuda {

/// x of grid and block are packs of channels, y are rows. A thread has one pack for all its rows,
/// so that what belongs to a channel stays in registers. A block has few channels (a line of the
/// cache) and many rows: that leaves few strips.
struct ChannelGrid {
  static constexpr int kThreads = 256;
  static constexpr int kMostChannels = 64;  ///< of a block
  dim3 grid, block;
};

/// For at most `blocks` blocks where the channels allow it.
inline ChannelGrid channel_grid(const ChannelExtents& e, int pack, int blocks) {
  constexpr std::int64_t kRowsPerThread = 4;  // at least, where there is more than one block
  const std::int64_t packs = e.channels / pack, most_lanes = pack == 1 ? kWarp : 8;
  const auto parts = [](std::int64_t n, std::int64_t size) { return (n + size - 1) / size; };
  DDP_CHECK(e.samples * e.rows < (std::int64_t{1} << 30), "batch norm of {} rows",
            e.samples * e.rows);
  std::int64_t lanes = 1;
  while (lanes < most_lanes && lanes < packs) lanes *= 2;
  const std::int64_t height = ChannelGrid::kThreads / lanes, groups = parts(packs, lanes);
  const std::int64_t strips = std::clamp<std::int64_t>(
      blocks / groups, 1, parts(e.samples * e.rows, height * kRowsPerThread));
  return {.grid = dim3(static_cast<unsigned>(groups), static_cast<unsigned>(strips)),
          .block = dim3(static_cast<unsigned>(lanes), static_cast<unsigned>(height))};
}

/// First channel of the pack of this thread; there is none if it is not below the channels.
template <int N>
__device__ inline std::int64_t first_channel() {
  return first_pack() * N;
}

/// The rows of one thread, from the first to the last or (Direction -1) back. Kernels that follow
/// each other walk in turns back and forth, so that the second finds in the cache what the first
/// has touched last. Knows the samples of rows without dividing.
template <int Direction>
class RowWalk {
 public:
  __device__ RowWalk(const ChannelExtents& e, std::int64_t channel)
      : rows_(static_cast<int>(e.rows)),
        stride_(static_cast<int>(gridDim.y * blockDim.y)),
        stride_samples_(stride_ / rows_),
        stride_rows_(stride_ % rows_),
        step_(Direction * stride_ * e.channels) {
    const int first = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
    left_ = static_cast<int>(e.samples) * rows_ - first;
    const int row = Direction > 0 ? first : left_ - 1;
    at_ = row * e.channels + channel;
    sample_ = row / rows_;
    row_ = row % rows_;
  }
  /// Whether there is a row `ahead` rows of this thread from here.
  __device__ bool more(int ahead = 0) const { return left_ > ahead * stride_; }
  /// The element of that row; not to be read where there is none.
  __device__ std::int64_t at(int ahead = 0) const { return at_ + ahead * step_; }
  __device__ int sample() const { return sample_; }  ///< of the row here, if there is one
  __device__ void advance() {
    left_ -= stride_;
    at_ += step_;
    sample_ += Direction * stride_samples_;
    row_ += Direction * stride_rows_;
    if (Direction > 0 ? row_ >= rows_ : row_ < 0) {
      row_ -= Direction * rows_;
      sample_ += Direction;
    }
  }

 private:
  int rows_, stride_, stride_samples_, stride_rows_;
  std::int64_t step_, at_;
  int left_, sample_, row_;
};

/// Rows that a thread adds in float before it adds in double.
inline constexpr int kRowsInFloat = 32;

/// strips[channel, strip] = two sums over the rows of a strip whose samples count. `Terms` has
///   Loaded                          what it needs of a pack of a row
///   kBatch, kBlocks                 rows that a thread loads at once; blocks of a multiprocessor
///   centers(e, weights, c, center)  what it subtracts in the channels from c on
///   load(at), finish(at, loaded)    for all rows; the latter may store
///   terms(loaded, j, center)        what element j adds to the sums, as a float2
template <int N, class Terms>
__global__ void __launch_bounds__(ChannelGrid::kThreads, Terms::kBlocks)
    sum_kernel(ChannelExtents e, const float* weights, Terms source, double2* strips) {
  constexpr int kBatch = Terms::kBatch;
  __shared__ double totals[2 * N][ChannelGrid::kThreads];
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
  for (int j = 0; j < 2 * N; ++j) totals[j][thread] = 0;
  const std::int64_t c = first_channel<N>();
  if (c < e.channels) {
    float center[N];
    source.centers(e, weights, c, center);
    RowWalk<-1> walk(e, c);
    while (walk.more()) {
      float first[N] = {}, second[N] = {};
      for (int run = 0; run < kRowsInFloat && walk.more(); run += kBatch) {
        typename Terms::Loaded loaded[kBatch];
        float weight[kBatch];
#pragma unroll
        for (int b = 0; b < kBatch; ++b, walk.advance()) {
          if (!walk.more()) continue;
          loaded[b] = source.load(walk.at());
          weight[b] = weights[walk.sample()];
        }
#pragma unroll
        for (int b = 0; b < kBatch; ++b) {
          if (!walk.more(b - kBatch)) continue;
          source.finish(walk.at(b - kBatch), loaded[b]);
          if (weight[b] == 0) continue;
          for (int j = 0; j < N; ++j) {
            const float2 terms = source.terms(loaded[b], j, center[j]);
            first[j] += terms.x;
            second[j] += terms.y;
          }
        }
      }
      for (int j = 0; j < N; ++j) {
        totals[j][thread] += first[j];
        totals[N + j][thread] += second[j];
        asm volatile("" ::: "memory");  // one after the other: all at once take more registers
      }
    }
  }
  __syncthreads();
  for (unsigned i = thread; i < N * blockDim.x; i += ChannelGrid::kThreads) {
    const unsigned j = i / blockDim.x, lane = i % blockDim.x;
    const std::int64_t channel =
        (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + lane) * N + j;
    if (channel >= e.channels) continue;
    double2 sum{0, 0};
    for (unsigned row = 0; row < blockDim.y; ++row) {
      sum.x += totals[j][row * blockDim.x + lane];
      sum.y += totals[N + j][row * blockDim.x + lane];
    }
    strips[channel * gridDim.y + blockIdx.y] = sum;
  }
}

/// Launch of a kernel with a warp for each channel.
struct WarpPerChannel {
  static constexpr unsigned kWarps = 8;
  explicit WarpPerChannel(std::int64_t channels)
      : grid(static_cast<unsigned>((channels + kWarps - 1) / kWarps)), block(kWarp, kWarps) {}
  dim3 grid, block;
  __device__ static std::int64_t channel() {
    return static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.y;
  }
};

/// Both sums of a channel over all strips, on every thread of a warp.
__device__ inline double2 sum_strips(const double2* strips, unsigned count, std::int64_t channel) {
  double2 sum{0, 0};
#pragma unroll 4
  for (unsigned strip = threadIdx.x; strip < count; strip += kWarp) {
    const double2 terms = strips[channel * count + strip];
    sum.x += terms.x;
    sum.y += terms.y;
  }
  return {warp_sum(sum.x), warp_sum(sum.y)};
}

/// Values per channel that count, on every thread of a warp.
__device__ inline double count_of(const ChannelExtents& e, const float* weights) {
  int samples = 0;
  for (std::int64_t n = threadIdx.x; n < e.samples; n += kWarp) samples += weights[n] != 0;
  return static_cast<double>(warp_sum(samples) * e.rows);
}

}  // namespace ddp::cuda
