// db is a sum over all rows. A block sums its strip of rows, each thread a pack of channels in a
// few rows at a time, and writes one number a channel to the workspace; a second kernel adds the
// strips. Where one strip is enough there is no second kernel.
#include "core/ops/row_grid.cuh"
#include "core/ops/rows.h"

namespace ddp {
namespace {

using namespace cuda;

constexpr int kBatch = 4;  // rows that a thread loads before it uses them
constexpr int kRun = 32;   // rows that it adds in float before it adds in double

/// Sums of the rows of one strip, in total; with Masked, dy counts only where y > 0, and that is
/// what dz, which may be dy, gets.
template <class T, int N, bool Masked>
__device__ void sum_rows(RowExtents e, std::int64_t c, const T* dy, const T* y, T* dz,
                         double (&total)[N]) {
  const std::int64_t stride = row_stride();
  for (std::int64_t row = first_row(); row < e.rows;) {
    float sum[N] = {};
    for (int run = 0; run < kRun && row < e.rows; run += kBatch, row += kBatch * stride) {
      Pack<T, N> gradient[kBatch], output[kBatch];
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        const std::int64_t at = (row + b * stride) * e.columns + c;
        if (row + b * stride >= e.rows) continue;
        gradient[b] = load<T, N>(dy + at);
        if constexpr (Masked) output[b] = load<T, N>(y + at);
      }
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        if (row + b * stride >= e.rows) continue;
        for (int j = 0; j < N; ++j) {
          T& element = gradient[b].element[j];
          if constexpr (Masked)
            if (to_float(output[b].element[j]) <= 0.0F) element = from_float<T>(0.0F);
          sum[j] += to_float(element);
        }
        if constexpr (Masked) store(dz + (row + b * stride) * e.columns + c, gradient[b]);
      }
    }
    for (int j = 0; j < N; ++j) total[j] += sum[j];
  }
}

/// db where there is one strip, otherwise strips[channel, strip].
template <class T, int N, bool Masked>
__global__ void __launch_bounds__(RowGrid::kThreads)
    strip_kernel(RowExtents e, const T* dy, const T* y, T* dz, double* strips, T* db) {
  __shared__ double totals[RowGrid::kThreads * N];  // [N, rows of the block, columns of the block]
  const std::int64_t c = first_pack() * N;
  double total[N] = {};
  if (c < e.columns) sum_rows<T, N, Masked>(e, c, dy, y, dz, total);
  for (int j = 0; j < N; ++j)
    totals[(j * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x] = total[j];
  __syncthreads();
  for (unsigned i = threadIdx.y * blockDim.x + threadIdx.x; i < N * blockDim.x;
       i += RowGrid::kThreads) {
    const unsigned j = i / blockDim.x, lane = i % blockDim.x;
    const std::int64_t channel =
        (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + lane) * N + j;
    if (channel >= e.columns) continue;
    double sum = 0;
    for (unsigned row = 0; row < blockDim.y; ++row)
      sum += totals[(j * blockDim.y + row) * blockDim.x + lane];
    if (gridDim.y == 1)
      db[channel] = from_float<T>(static_cast<float>(sum));
    else
      strips[channel * gridDim.y + blockIdx.y] = sum;
  }
}

/// A warp adds the strips of one channel.
template <class T>
__global__ void channel_kernel(std::int64_t channels, unsigned strips, const double* sums, T* db) {
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (c >= channels) return;
  double sum = 0;
  for (unsigned strip = threadIdx.x; strip < strips; strip += kWarp)
    sum += sums[c * strips + strip];
  sum = warp_sum(sum);
  if (threadIdx.x == 0) db[c] = from_float<T>(static_cast<float>(sum));
}

template <class T, int N, bool Masked>
Kernel backward(RowExtents e, int multiprocessors) {
  constexpr std::int64_t kRowsPerThread = 8;
  RowGrid launch = row_grid(e.rows, e.columns / N, 1, kRowsPerThread);
  const unsigned most_blocks = 8U * static_cast<unsigned>(multiprocessors);
  launch.grid.y = std::min(launch.grid.y, std::max(1U, most_blocks / launch.grid.x));
  const unsigned strips = launch.grid.y;
  const auto run = [=](const KernelArgs& args) {
    auto* sums = reinterpret_cast<double*>(args.workspace.data());
    T* db = args.outputs[Masked ? 1 : 0].as<T>();
    strip_kernel<T, N, Masked><<<launch.grid, launch.block, 0, stream_of(args)>>>(
        e, args.inputs[0].as<T>(), Masked ? args.inputs[1].as<T>() : nullptr,
        Masked ? args.outputs[0].as<T>() : nullptr, sums, db);
    check_launch("bias_backward");
    if (strips == 1) return;
    const dim3 block(kWarp, RowGrid::kThreads / kWarp);
    channel_kernel<<<static_cast<unsigned>((e.columns + block.y - 1) / block.y), block, 0,
                     stream_of(args)>>>(e.columns, strips, sums, db);
    check_launch("bias_backward of all strips");
  };
  return {.run = run,
          .workspace_bytes =
              strips == 1 ? 0 : static_cast<std::size_t>(e.columns * strips) * sizeof(double)};
}

template <bool Masked>
Kernel backward_factory(const OpSignature& s, const KernelContext& context) {
  const RowExtents e = row_extents(s.inputs[0]);
  return with_packs(s.inputs[0].dtype, e.columns, [&](auto type, auto pack) {
    return backward<decltype(type), decltype(pack)::value, Masked>(e,
                                                                   context.gpu->multiprocessors());
  });
}
constexpr KernelFactory bias_backward_factory = backward_factory<false>;
constexpr KernelFactory bias_relu_backward_factory = backward_factory<true>;
DDP_REGISTER_CUDA_KERNEL("bias_backward", bias_backward_factory);
DDP_REGISTER_CUDA_KERNEL("bias_relu_backward", bias_relu_backward_factory);

}  // namespace
}  // namespace ddp
