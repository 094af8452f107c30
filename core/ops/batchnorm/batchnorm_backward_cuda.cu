// With z the sum in front of the relu, or y without relu: dz is dy where y > 0. Two passes over
// memory: Σ dz and Σ dz (x - mean) over the samples that count, writing dz where it is asked for,
// and dx. Each element is read by the thread that writes it, in the same pass, so that dx may lie
// over x or dy and dz over dy.
#include "core/ops/batchnorm/batchnorm.h"
#include "core/ops/batchnorm/channel_sums.cuh"
#include "core/ops/flag_attribute.h"

namespace ddp {
namespace {

using namespace cuda;

/// Packs of one row.
template <class T, int N>
struct Row {
  Packed<T, N> dz, x;
};
template <class T, int N>
struct MaskedRow : Row<T, N> {
  Packed<T, N> y;
};

/// Reads dz and x; with Masked dz is dy where y > 0, and NaN in y passes dy.
template <class T, int N, bool Masked>
struct Rows {
  using Loaded = std::conditional_t<Masked, MaskedRow<T, N>, Row<T, N>>;
  const T *dy, *x, *y;

  __device__ Loaded load(std::int64_t at) const {
    Loaded row;
    row.dz = Packed<T, N>(dy + at);
    row.x = Packed<T, N>(x + at);
    if constexpr (Masked) row.y = Packed<T, N>(y + at);
    return row;
  }
  __device__ static void mask(Loaded& row) {
    if constexpr (Masked)
      for (int j = 0; j < N; ++j)
        if (row.y[j] <= 0) row.dz.clear(j);
  }
};

/// Sums of dz and dz (x - mean).
template <class T, int N, bool Masked>
struct Gradients : Rows<T, N, Masked> {
  using Loaded = typename Rows<T, N, Masked>::Loaded;
  static constexpr int kBatch = 2, kBlocks = 3;
  const float* mean;
  T* dz;  ///< null if nobody asks for it

  __device__ void centers(const ChannelExtents&, const float*, std::int64_t c,
                          float (&center)[N]) const {
    for (int j = 0; j < N; ++j) center[j] = mean[c + j];
  }
  __device__ void finish(std::int64_t at, Loaded& row) const {
    this->mask(row);
    // Padding too: the residual branch of a sample without weight gets its zeros.
    if (dz != nullptr) row.dz.store(dz + at);
  }
  __device__ float2 terms(const Loaded& row, int j, float center) const {
    const float d = row.dz[j];
    return {d, d * (row.x[j] - center)};
  }
};

/// dx = scale · (dz - mean_dz - (x - mean) · slope).
struct Coefficients {
  float mean, scale, mean_dz, slope;
};

struct Channels {
  ChannelExtents e;
  unsigned strips;
  const double2* sums;
  const float *weights, *weight, *mean, *inverse_deviation;
  float *dweight, *dbias;
  Coefficients* coefficients;
};

__global__ void coefficients_kernel(Channels args) {
  const std::int64_t c = WarpPerChannel::channel();
  if (c >= args.e.channels) return;
  const double count = fmax(count_of(args.e, args.weights), 1.0);
  const double2 sums = sum_strips(args.sums, args.strips, c);
  if (threadIdx.x != 0) return;
  const double inverse = args.inverse_deviation[c];
  args.dbias[c] = static_cast<float>(sums.x);
  args.dweight[c] = static_cast<float>(sums.y * inverse);
  args.coefficients[c] = {.mean = args.mean[c],
                          .scale = static_cast<float>(args.weight[c] * inverse),
                          .mean_dz = static_cast<float>(sums.x / count),
                          .slope = static_cast<float>(sums.y * inverse * inverse / count)};
}

template <class T, int N, bool Masked>
__global__ void __launch_bounds__(ChannelGrid::kThreads, 3)
    dx_kernel(ChannelExtents e, const float* weights, Rows<T, N, Masked> rows,
              const Coefficients* coefficients, T* dx) {
  constexpr int kBatch = 2;
  const std::int64_t c = first_channel<N>();
  if (c >= e.channels) return;
  Coefficients of[N];
  for (int j = 0; j < N; ++j) of[j] = coefficients[c + j];
  RowWalk<1> walk(e, c);
  while (walk.more()) {
    typename Rows<T, N, Masked>::Loaded row[kBatch];
    float weight[kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b, walk.advance()) {
      if (!walk.more()) continue;
      row[b] = rows.load(walk.at());
      weight[b] = weights[walk.sample()];
    }
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      if (!walk.more(b - kBatch)) continue;
      rows.mask(row[b]);
      Pack<T, N> result;
      for (int j = 0; j < N; ++j) {
        const float d = row[b].dz[j] - of[j].mean_dz;
        const float deviation = row[b].x[j] - of[j].mean;
        const float gradient = of[j].scale * (d - deviation * of[j].slope);
        result.element[j] = from_float<T>(weight[b] == 0 ? 0.0F : gradient);
      }
      store(dx + walk.at(b - kBatch), result);
    }
  }
}

template <class T, int N, bool Relu, bool Residual>
Kernel backward(const OpSignature& s, const Device& gpu) {
  using Terms = Gradients<T, N, Relu>;
  constexpr bool kMaskAgain = Relu && !Residual;  // otherwise dz has been written
  const ChannelExtents e = channel_extents(s.inputs[1]);
  const auto launch_of = [&](auto* kernel) {
    return channel_grid(e, N, resident_blocks(gpu, kernel, ChannelGrid::kThreads));
  };
  const ChannelGrid sum_launch = launch_of(sum_kernel<N, Terms>),
                    dx_launch = launch_of(dx_kernel<T, N, kMaskAgain>);
  const unsigned strips = sum_launch.grid.y;
  const std::size_t sums_bytes = static_cast<std::size_t>(e.channels) * strips * sizeof(double2);
  const auto run = [=](const KernelArgs& args) {
    const T* dy = args.inputs[0].as<T>();
    const T* x = args.inputs[1].as<T>();
    const float* weights = args.inputs[5].as<float>();
    const T* y = Relu ? args.inputs[6].as<T>() : nullptr;
    T* dz = Residual ? args.outputs[3].as<T>() : nullptr;
    auto* sums = reinterpret_cast<double2*>(args.workspace.data());
    auto* coefficients = reinterpret_cast<Coefficients*>(args.workspace.data() + sums_bytes);
    const Channels channels{.e = e,
                            .strips = strips,
                            .sums = sums,
                            .weights = weights,
                            .weight = args.inputs[2].as<float>(),
                            .mean = args.inputs[3].as<float>(),
                            .inverse_deviation = args.inputs[4].as<float>(),
                            .dweight = args.outputs[1].as<float>(),
                            .dbias = args.outputs[2].as<float>(),
                            .coefficients = coefficients};
    sum_kernel<N><<<sum_launch.grid, sum_launch.block, 0, stream_of(args)>>>(
        e, weights, Terms{{dy, x, y}, channels.mean, dz}, sums);
    check_launch("sums of batchnorm_backward");
    const WarpPerChannel warps(e.channels);
    coefficients_kernel<<<warps.grid, warps.block, 0, stream_of(args)>>>(channels);
    check_launch("coefficients of batchnorm_backward");
    dx_kernel<T, N, kMaskAgain><<<dx_launch.grid, dx_launch.block, 0, stream_of(args)>>>(
        e, weights, {Residual ? dz : dy, x, y}, coefficients, args.outputs[0].as<T>());
    check_launch("batchnorm_backward");
  };
  return {
      .run = run,
      .workspace_bytes = sums_bytes + static_cast<std::size_t>(e.channels) * sizeof(Coefficients)};
}

Kernel batchnorm_backward_factory(const OpSignature& s, const KernelContext& context) {
  const bool relu = flag(s.attributes, "relu"), residual = flag(s.attributes, "residual");
  return with_packs(s.inputs[1].dtype, s.inputs[1].shape[-1], [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int kN = decltype(pack)::value;
    const Device& gpu = *context.gpu;
    if (relu)
      return residual ? backward<T, kN, true, true>(s, gpu) : backward<T, kN, true, false>(s, gpu);
    return residual ? backward<T, kN, false, true>(s, gpu) : backward<T, kN, false, false>(s, gpu);
  });
}
DDP_REGISTER_CUDA_KERNEL("batchnorm_backward", batchnorm_backward_factory);

}  // namespace
}  // namespace ddp
