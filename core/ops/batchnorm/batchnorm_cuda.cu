// Two passes over memory: sums of x minus the first row that counts, so that a large mean does not
// eat the variance, and the normalisation. Inference has the second only.
#include "core/ops/batchnorm/batchnorm.h"
#include "core/ops/batchnorm/channel_sums.cuh"
#include "core/ops/flag_attribute.h"

namespace ddp {
namespace {

using namespace cuda;

/// Offset of the first row of the first sample that counts, 0 if none does.
__device__ std::int64_t origin_of(const ChannelExtents& e, const float* weights) {
  std::int64_t n = 0;
  while (n < e.samples && weights[n] == 0) ++n;
  return n == e.samples ? 0 : n * e.rows * e.channels;
}

/// Sums of d and d², d = x - origin.
template <class T, int N>
struct Deviations {
  using Loaded = Packed<T, N>;
  static constexpr int kBatch = 4, kBlocks = 4;
  const T* x;

  __device__ void centers(const ChannelExtents& e, const float* weights, std::int64_t c,
                          float (&center)[N]) const {
    const Packed<T, N> origin(x + origin_of(e, weights) + c);
    for (int j = 0; j < N; ++j) center[j] = origin[j];
  }
  __device__ Loaded load(std::int64_t at) const { return Loaded(x + at); }
  __device__ void finish(std::int64_t, const Loaded&) const {}
  __device__ float2 terms(const Loaded& loaded, int j, float center) const {
    const float d = loaded[j] - center;
    return {d, d * d};
  }
};

/// y = x · factor + shift.
struct Scale {
  float factor, shift;
};
__device__ Scale scale_of(float weight, float bias, double mean, double inverse) {
  const double factor = weight * inverse;
  return {static_cast<float>(factor), static_cast<float>(bias - mean * factor)};
}

/// What the statistics of a channel are computed from and where they go.
template <class T>
struct Channels {
  ChannelExtents e;
  double eps;
  unsigned strips;
  const double2* sums;
  const T* x;
  const float *weights, *weight, *bias;
  float *mean, *inverse_deviation, *statistics;
  Scale* scales;
};

template <class T>
__global__ void statistics_kernel(Channels<T> args) {
  const ChannelExtents& e = args.e;
  const std::int64_t c = WarpPerChannel::channel();
  if (c >= e.channels) return;
  const double count = count_of(e, args.weights);
  const double2 sums = sum_strips(args.sums, args.strips, c);
  if (threadIdx.x != 0) return;
  double mean = 0, variance = 0;
  if (count > 0) {
    const double from_origin = sums.x / count;
    // A difference of sums may fall below zero by rounding; NaN stays.
    const double difference = sums.y / count - from_origin * from_origin;
    mean = to_float(args.x[origin_of(e, args.weights) + c]) + from_origin;
    variance = difference < 0 ? 0 : difference;
  }
  const double inverse = 1 / sqrt(variance + args.eps);
  args.mean[c] = static_cast<float>(mean);
  args.inverse_deviation[c] = static_cast<float>(inverse);
  args.scales[c] = scale_of(args.weight[c], args.bias[c], mean, inverse);
  // One value has no variance: such a micro-batch adds nothing to the running averages.
  const bool counts = count > 1;
  args.statistics[c] = counts ? static_cast<float>(count * mean) : 0;
  args.statistics[e.channels + c] =
      counts ? static_cast<float>(count * (count / (count - 1)) * variance) : 0;
  if (c == 0) args.statistics[2 * e.channels] = counts ? static_cast<float>(count) : 0;
}

struct OfMicroBatch {
  const Scale* scales;
  __device__ Scale operator()(std::int64_t c) const { return scales[c]; }
};
struct OfRunningAverages {
  const float *weight, *bias, *mean, *variance;
  double eps;
  __device__ Scale operator()(std::int64_t c) const {
    return scale_of(weight[c], bias[c], mean[c], 1 / sqrt(variance[c] + eps));
  }
};

/// y = x · factor + shift (+ addend), then max(y, 0) with relu; NaN passes. 0 for samples of weight
/// 0; without weights (null) all samples count. y may lie over x or addend.
template <class T, int N, bool Addend, class ScaleOf>
__global__ void __launch_bounds__(ChannelGrid::kThreads, 4)
    normalize_kernel(ChannelExtents e, bool relu, const float* weights, const T* x,
                     ScaleOf scale_of, const T* addend, T* y) {
  constexpr int kBatch = Addend ? 2 : 4;
  __shared__ Scale scales[ChannelGrid::kMostChannels];
  for (unsigned i = threadIdx.y * blockDim.x + threadIdx.x; i < N * blockDim.x;
       i += ChannelGrid::kThreads) {
    const std::int64_t channel = static_cast<std::int64_t>(blockIdx.x) * blockDim.x * N + i;
    if (channel < e.channels) scales[i] = scale_of(channel);
  }
  __syncthreads();
  const std::int64_t c = first_channel<N>();
  if (c >= e.channels) return;
  Scale scale[N];
  for (int j = 0; j < N; ++j) scale[j] = scales[threadIdx.x * N + j];
  RowWalk<1> walk(e, c);
  while (walk.more()) {
    Packed<T, N> values[kBatch], addends[kBatch];
    float weight[kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b, walk.advance()) {
      if (!walk.more()) continue;
      values[b] = Packed<T, N>(x + walk.at());
      if constexpr (Addend) addends[b] = Packed<T, N>(addend + walk.at());
      weight[b] = weights == nullptr ? 1 : weights[walk.sample()];
    }
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      if (!walk.more(b - kBatch)) continue;
      Pack<T, N> result;
      for (int j = 0; j < N; ++j) {
        float value = values[b][j] * scale[j].factor + scale[j].shift;
        if constexpr (Addend) value += addends[b][j];
        result.element[j] = from_float<T>((relu && value < 0) || weight[b] == 0 ? 0.0F : value);
      }
      store(y + walk.at(b - kBatch), result);
    }
  }
}

/// Enqueues normalize_kernel, prepared for an addend or none.
template <class T, int N, class ScaleOf>
class Normalize {
 public:
  Normalize(const ChannelExtents& e, bool relu, bool addend, const Device& gpu)
      : e_(e), relu_(relu), kernel_(addend ? with_addend() : without_addend()) {
    launch_ = channel_grid(e, N, resident_blocks(gpu, kernel_, ChannelGrid::kThreads));
  }
  void operator()(const KernelArgs& args, const float* weights, const ScaleOf& scale_of,
                  const T* addend) const {
    kernel_<<<launch_.grid, launch_.block, 0, stream_of(args)>>>(
        e_, relu_, weights, args.inputs[0].as<T>(), scale_of, addend, args.outputs[0].as<T>());
    check_launch("batchnorm");
  }

 private:
  using Function = void(ChannelExtents, bool, const float*, const T*, ScaleOf, const T*, T*);
  static Function* with_addend() { return normalize_kernel<T, N, true, ScaleOf>; }
  static Function* without_addend() { return normalize_kernel<T, N, false, ScaleOf>; }

  ChannelExtents e_;
  bool relu_;
  Function* kernel_;
  ChannelGrid launch_;
};

template <class T, int N>
Kernel forward(const OpSignature& s, const Device& gpu) {
  using Terms = Deviations<T, N>;
  const ChannelExtents e = channel_extents(s.inputs[0]);
  const double eps = s.attributes.real("eps");
  const bool has_addend = s.inputs.size() > 4;
  const Normalize<T, N, OfMicroBatch> normalize(e, flag(s.attributes, "relu"), has_addend, gpu);
  const ChannelGrid launch =
      channel_grid(e, N, resident_blocks(gpu, sum_kernel<N, Terms>, ChannelGrid::kThreads));
  const unsigned strips = launch.grid.y;
  const std::size_t sums_bytes = static_cast<std::size_t>(e.channels) * strips * sizeof(double2);
  const auto run = [=](const KernelArgs& args) {
    const T* x = args.inputs[0].as<T>();
    const float* weights = args.inputs[3].as<float>();
    auto* sums = reinterpret_cast<double2*>(args.workspace.data());
    auto* scales = reinterpret_cast<Scale*>(args.workspace.data() + sums_bytes);
    sum_kernel<N><<<launch.grid, launch.block, 0, stream_of(args)>>>(e, weights, Terms{x}, sums);
    check_launch("sums of batchnorm");
    const WarpPerChannel warps(e.channels);
    statistics_kernel<<<warps.grid, warps.block, 0, stream_of(args)>>>(
        Channels<T>{.e = e,
                    .eps = eps,
                    .strips = strips,
                    .sums = sums,
                    .x = x,
                    .weights = weights,
                    .weight = args.inputs[1].as<float>(),
                    .bias = args.inputs[2].as<float>(),
                    .mean = args.outputs[1].as<float>(),
                    .inverse_deviation = args.outputs[2].as<float>(),
                    .statistics = args.outputs[3].as<float>(),
                    .scales = scales});
    check_launch("statistics of batchnorm");
    normalize(args, weights, {scales}, has_addend ? args.inputs[4].as<T>() : nullptr);
  };
  return {.run = run,
          .workspace_bytes = sums_bytes + static_cast<std::size_t>(e.channels) * sizeof(Scale)};
}

template <class T, int N>
Kernel inference(const OpSignature& s, const Device& gpu) {
  const ChannelExtents e = channel_extents(s.inputs[0]);
  const bool has_addend = s.inputs.size() > 5;
  const Normalize<T, N, OfRunningAverages> normalize(e, flag(s.attributes, "relu"), has_addend,
                                                     gpu);
  return {.run = [=, eps = s.attributes.real("eps")](const KernelArgs& args) {
    const auto channels = [&](std::size_t i) { return args.inputs[i].as<float>(); };
    normalize(args, nullptr, {channels(1), channels(2), channels(3), channels(4), eps},
              has_addend ? args.inputs[5].as<T>() : nullptr);
  }};
}

Kernel batchnorm_factory(const OpSignature& s, const KernelContext& context) {
  return with_packs(s.inputs[0].dtype, s.inputs[0].shape[-1], [&](auto type, auto pack) {
    return forward<decltype(type), decltype(pack)::value>(s, *context.gpu);
  });
}
DDP_REGISTER_CUDA_KERNEL("batchnorm", batchnorm_factory);

Kernel batchnorm_inference_factory(const OpSignature& s, const KernelContext& context) {
  return with_packs(s.inputs[0].dtype, s.inputs[0].shape[-1], [&](auto type, auto pack) {
    return inference<decltype(type), decltype(pack)::value>(s, *context.gpu);
  });
}
DDP_REGISTER_CUDA_KERNEL("batchnorm_inference", batchnorm_inference_factory);

}  // namespace
}  // namespace ddp
