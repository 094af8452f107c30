// A row belongs to a team of threads: a warp, or a block where it is longer. Up to kKept elements a
// thread stay in registers, so that memory is touched once; longer rows are read again, from the
// cache.
#include <limits>

#include "core/ops/row_grid.cuh"
#include "core/ops/rows.h"

namespace ddp {
namespace {

using namespace cuda;

constexpr int kKept = 32;
constexpr int kBlock = RowGrid::kThreads;

/// Threads that share a row: `Threads` is a warp or the block. All of them must call the
/// reductions. A thread has every Threads-th pack of N elements of the row.
template <int Threads, int N, bool Kept>
struct Team {
  static_assert(Threads == kWarp || Threads == kBlock);
  static constexpr int kRows = kBlock / Threads;       // of a block
  static constexpr int kPacks = Kept ? kKept / N : 1;  // that a thread has room for

  __device__ static std::int64_t first_row() {
    return static_cast<std::int64_t>(blockIdx.x) * kRows + threadIdx.x / Threads;
  }
  __device__ static std::int64_t row_stride() {
    return static_cast<std::int64_t>(gridDim.x) * kRows;
  }
  /// Calls f(place, column) for each pack of this thread; places repeat where no pack is kept.
  template <class F>
  __device__ static void for_each_pack(std::int64_t columns, const F& f) {
    const int first = static_cast<int>(threadIdx.x) % Threads * N;
    if constexpr (Kept) {
#pragma unroll
      for (int i = 0; i < kPacks; ++i)
        if (first + i * Threads * N < columns) f(i, std::int64_t{first + i * Threads * N});
    } else {
      for (std::int64_t column = first; column < columns; column += Threads * N) f(0, column);
    }
  }
  __device__ static float sum(double value) {
    if constexpr (Threads == kWarp)
      return static_cast<float>(warp_sum(value));
    else
      return static_cast<float>(block_sum(value));
  }
  __device__ static float largest(float value) {
    value = warp_max(value);
    if constexpr (Threads == kBlock) {
      constexpr int kWarps = kBlock / kWarp;
      __shared__ float partial[kWarps];
      __syncthreads();  // of an earlier row, all have read the largest
      if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = value;
      __syncthreads();
      value = warp_max(partial[threadIdx.x % kWarps]);
    }
    return value;
  }
};

template <class T, int N>
__device__ void read(const T* at, float (&values)[N]) {
  const auto pack = load<T, N>(at);
  for (int j = 0; j < N; ++j) values[j] = to_float(pack.element[j]);
}

// NaN is no candidate for the largest, but makes the sum NaN.
template <class T, int N, int Threads, bool Kept>
__global__ void __launch_bounds__(kBlock)
    forward_kernel(RowExtents e, const T* x, const T* /*none*/, T* y) {
  using Row = Team<Threads, N, Kept>;
  for (std::int64_t row = Row::first_row(); row < e.rows; row += Row::row_stride()) {
    const std::int64_t begin = row * e.columns;
    float values[Row::kPacks][N];
    float largest = -std::numeric_limits<float>::infinity();
    Row::for_each_pack(e.columns, [&](int i, std::int64_t column) {
      read(x + begin + column, values[i]);
      for (int j = 0; j < N; ++j) largest = fmaxf(largest, values[i][j]);
    });
    largest = Row::largest(largest);
    double total = 0;
    Row::for_each_pack(e.columns, [&](int i, std::int64_t column) {
      if constexpr (!Kept) read(x + begin + column, values[i]);
      float sum = 0;
      for (int j = 0; j < N; ++j) {
        values[i][j] = expf(values[i][j] - largest);
        sum += values[i][j];
      }
      total += sum;
    });
    const float scale = 1.0F / Row::sum(total);
    Row::for_each_pack(e.columns, [&](int i, std::int64_t column) {
      if constexpr (!Kept) {
        read(x + begin + column, values[i]);
        for (int j = 0; j < N; ++j) values[i][j] = expf(values[i][j] - largest);
      }
      Pack<T, N> pack;
      for (int j = 0; j < N; ++j) pack.element[j] = from_float<T>(values[i][j] * scale);
      store(y + begin + column, pack);
    });
  }
}

template <class T, int N, int Threads, bool Kept>
__global__ void __launch_bounds__(kBlock)
    backward_kernel(RowExtents e, const T* dy, const T* y, T* dx) {
  using Row = Team<Threads, N, Kept>;
  for (std::int64_t row = Row::first_row(); row < e.rows; row += Row::row_stride()) {
    const std::int64_t begin = row * e.columns;
    float gradients[Row::kPacks][N], outputs[Row::kPacks][N];
    double total = 0;
    Row::for_each_pack(e.columns, [&](int i, std::int64_t column) {
      read(dy + begin + column, gradients[i]);
      read(y + begin + column, outputs[i]);
      float sum = 0;
      for (int j = 0; j < N; ++j) sum += gradients[i][j] * outputs[i][j];
      total += sum;
    });
    const float mean = Row::sum(total);
    Row::for_each_pack(e.columns, [&](int i, std::int64_t column) {
      if constexpr (!Kept) {
        read(dy + begin + column, gradients[i]);
        read(y + begin + column, outputs[i]);
      }
      Pack<T, N> pack;
      for (int j = 0; j < N; ++j)
        pack.element[j] = from_float<T>(outputs[i][j] * (gradients[i][j] - mean));
      store(dx + begin + column, pack);
    });
  }
}

template <class T>
using RowKernel = void (*)(RowExtents, const T*, const T*, T*);

/// One kernel for each length of rows.
template <class T>
struct Choice {
  RowKernel<T> by_warp, by_block, rereading;

  Kernel prepare(RowExtents e, const KernelContext& context, const char* name) const {
    const bool short_rows = e.columns <= kKept * kWarp, kept = e.columns <= kKept * kBlock;
    const int blocks = grid_blocks(*context.gpu, e.rows * (short_rows ? kWarp : kBlock), kBlock);
    const RowKernel<T> kernel = short_rows ? by_warp : kept ? by_block : rereading;
    const auto run = [=](const KernelArgs& args) {
      const T* second = args.inputs.size() > 1 ? args.inputs[1].as<T>() : nullptr;
      kernel<<<blocks, kBlock, 0, stream_of(args)>>>(e, args.inputs[0].as<T>(), second,
                                                     args.outputs[0].as<T>());
      check_launch(name);
    };
    return {.run = run,
            .algorithm = short_rows ? "warp"
                         : kept     ? "block"
                                    : "block rereading its row"};
  }
};

template <class T, int N>
constexpr Choice<T> kForward{forward_kernel<T, N, kWarp, true>, forward_kernel<T, N, kBlock, true>,
                             forward_kernel<T, N, kBlock, false>};
template <class T, int N>
constexpr Choice<T> kBackward{backward_kernel<T, N, kWarp, true>,
                              backward_kernel<T, N, kBlock, true>,
                              backward_kernel<T, N, kBlock, false>};

Kernel softmax_factory(const OpSignature& s, const KernelContext& context) {
  const RowExtents e = row_extents(s.inputs[0]);
  return with_packs(s.inputs[0].dtype, e.columns, [&](auto type, auto pack) {
    return kForward<decltype(type), decltype(pack)::value>.prepare(e, context, "softmax");
  });
}
Kernel softmax_backward_factory(const OpSignature& s, const KernelContext& context) {
  const RowExtents e = row_extents(s.inputs[0]);
  return with_packs(s.inputs[0].dtype, e.columns, [&](auto type, auto pack) {
    return kBackward<decltype(type), decltype(pack)::value>.prepare(e, context, "softmax_backward");
  });
}
DDP_REGISTER_CUDA_KERNEL("softmax", softmax_factory);
DDP_REGISTER_CUDA_KERNEL("softmax_backward", softmax_backward_factory);

}  // namespace
}  // namespace ddp
