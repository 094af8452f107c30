// Two passes over memory forward (sums, normalise) and two backward. Sums are taken in double, and
// of x minus the first row, so that a large mean does not eat the variance.
#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "core/backend/cpu/parallel.h"
#include "core/ops/batchnorm/batchnorm.h"
#include "core/ops/batchnorm/extents.h"
#include "core/ops/flag_attribute.h"

namespace ddp {
namespace {

using Extents = ChannelExtents;

/// Channels summed at once, in registers; and rows that stay in the first-level cache meanwhile.
constexpr std::int64_t kGroup = 16;
constexpr std::int64_t kBlockRows = 64;

/// Two sums over rows for each channel: sums[c] += Σ f, sums[channels + c] += Σ g, where term(i, c)
/// gives {f, g} of row i. `term` may store what it computes.
template <class Term>
void sum_rows(std::int64_t rows, std::int64_t channels, double* sums, const Term& term) {
  for (std::int64_t begin = 0; begin < rows; begin += kBlockRows) {
    const std::int64_t end = std::min(begin + kBlockRows, rows);
    for (std::int64_t first = 0; first < channels; first += kGroup) {
      const auto sum_group = [&](auto width) {
        std::array<double, kGroup> f{}, g{};
        for (std::int64_t i = begin; i < end; ++i)
          for (std::int64_t j = 0; j < width; ++j) {
            const auto [a, b] = term(i, first + j);
            f[static_cast<std::size_t>(j)] += a;
            g[static_cast<std::size_t>(j)] += b;
          }
        for (std::int64_t j = 0; j < width; ++j) {
          sums[first + j] += f[static_cast<std::size_t>(j)];
          sums[channels + first + j] += g[static_cast<std::size_t>(j)];
        }
      };
      if (channels - first >= kGroup)
        sum_group(std::integral_constant<std::int64_t, kGroup>{});
      else
        sum_group(channels - first);
    }
  }
}

struct Terms {
  double f, g;
};

/// Sums over the samples that count. Each thread sums its samples, then the threads' sums are added
/// in their order: workspace [threads][2 C] doubles, of which the first row gets the result.
template <class SumSample>
void sum_samples(const Extents& e, int threads, const float* weights, double* workspace,
                 const SumSample& sum_sample) {
  const std::int64_t width = 2 * e.channels;
  std::fill_n(workspace, threads * width, 0.0);
  cpu::parallel_for(threads, e.samples, [&](std::int64_t begin, std::int64_t end, int thread) {
    for (std::int64_t n = begin; n < end; ++n)
      if (weights[n] != 0) sum_sample(n, workspace + thread * width);
  });
  for (int thread = 1; thread < threads; ++thread)
    for (std::int64_t c = 0; c < width; ++c) workspace[c] += workspace[thread * width + c];
}

std::size_t sums_bytes(const Extents& e, int threads) {
  return static_cast<std::size_t>(threads * 2 * e.channels) * sizeof(double);
}

/// Values per channel that count, as a double.
double count_of(const Extents& e, const float* weights) {
  std::int64_t samples = 0;
  for (std::int64_t n = 0; n < e.samples; ++n) samples += weights[n] != 0;
  return static_cast<double>(samples * e.rows);
}

/// y = x · scale + shift (+ addend), then max(y, 0) with Relu; NaN passes. 0 for samples of weight
/// 0; without weights (null) all samples count.
template <class T, bool Relu>
void normalize(const Extents& e, int threads, const float* weights, const T* x, const T* scale,
               const T* shift, const T* addend, T* y) {
  const std::int64_t channels = e.channels;
  const auto rows_of_a_sample = [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin * channels; i < end * channels; i += channels)
      for (std::int64_t c = 0; c < channels; ++c) {
        T value = x[i + c] * scale[c] + shift[c];
        if (addend != nullptr) value += addend[i + c];
        y[i + c] = Relu && value < T{0} ? T{0} : value;
      }
  };
  cpu::parallel_for(
      threads, e.samples * e.rows, [=, rows = e.rows](std::int64_t begin, std::int64_t end, int) {
        while (begin < end) {
          const std::int64_t sample = begin / rows, last = std::min(end, (sample + 1) * rows);
          if (weights != nullptr && weights[sample] == 0)
            std::fill(y + begin * channels, y + last * channels, T{0});
          else
            rows_of_a_sample(begin, last);
          begin = last;
        }
      });
}

template <class T>
void normalize(const Extents& e, int threads, bool relu, const float* weights, const T* x,
               const T* scale, const T* shift, const T* addend, T* y) {
  if (relu)
    normalize<T, true>(e, threads, weights, x, scale, shift, addend, y);
  else
    normalize<T, false>(e, threads, weights, x, scale, shift, addend, y);
}

template <class T>
Kernel forward(const Extents& e, double eps, bool relu, int threads) {
  const auto run = [=](const KernelArgs& args) {
    const T* x = args.inputs[0].as<T>();
    const T* weight = args.inputs[1].as<T>();
    const T* bias = args.inputs[2].as<T>();
    const float* weights = args.inputs[3].as<float>();
    const T* addend = args.inputs.size() > 4 ? args.inputs[4].as<T>() : nullptr;
    T* mean = args.outputs[1].as<T>();
    T* inverse_deviation = args.outputs[2].as<T>();
    T* statistics = args.outputs[3].as<T>();
    auto* sums = reinterpret_cast<double*>(args.workspace.data());
    T* scale = reinterpret_cast<T*>(sums + threads * 2 * e.channels);
    T* shift = scale + e.channels;

    const float* counted =
        std::find_if(weights, weights + e.samples, [](float w) { return w != 0; });
    const T* origin =
        x + (counted == weights + e.samples ? 0 : counted - weights) * e.rows * e.channels;
    sum_samples(e, threads, weights, sums, [&](std::int64_t n, double* into) {
      const T* rows = x + n * e.rows * e.channels;
      sum_rows(e.rows, e.channels, into,
               [=, channels = e.channels](std::int64_t i, std::int64_t c) {
                 const double d = static_cast<double>(rows[i * channels + c] - origin[c]);
                 return Terms{d, d * d};
               });
    });

    const double count = count_of(e, weights);
    const double unbiased = count > 1 ? count / (count - 1) : 0;
    for (std::int64_t c = 0; c < e.channels; ++c) {
      const double from_origin = count > 0 ? sums[c] / count : 0;
      const double m = count > 0 ? static_cast<double>(origin[c]) + from_origin : 0;
      // A difference of sums may fall below zero by rounding; NaN stays.
      const double difference =
          count > 0 ? sums[e.channels + c] / count - from_origin * from_origin : 0;
      const double variance = difference < 0 ? 0 : difference;
      const double inverse = 1 / std::sqrt(variance + eps);
      mean[c] = static_cast<T>(m);
      inverse_deviation[c] = static_cast<T>(inverse);
      statistics[c] = static_cast<T>(count * m);
      statistics[e.channels + c] = static_cast<T>(count * unbiased * variance);
      const double factor = static_cast<double>(weight[c]) * inverse;
      scale[c] = static_cast<T>(factor);
      shift[c] = static_cast<T>(static_cast<double>(bias[c]) - m * factor);
    }
    // One value has no variance: such a micro-batch adds nothing to the running averages.
    statistics[2 * e.channels] = static_cast<T>(count);
    if (count == 1) std::fill_n(statistics, 2 * e.channels + 1, T{0});
    normalize(e, threads, relu, weights, x, scale, shift, addend, args.outputs[0].as<T>());
  };
  return {.run = run,
          .workspace_bytes =
              sums_bytes(e, threads) + static_cast<std::size_t>(2 * e.channels) * sizeof(T)};
}

template <class T>
Kernel backward(const Extents& e, bool relu, bool residual, int threads) {
  const auto run = [=](const KernelArgs& args) {
    const T* dy = args.inputs[0].as<T>();
    const T* x = args.inputs[1].as<T>();
    const T* weight = args.inputs[2].as<T>();
    const T* mean = args.inputs[3].as<T>();
    const T* inverse = args.inputs[4].as<T>();
    const float* weights = args.inputs[5].as<float>();
    const T* y = relu ? args.inputs[6].as<T>() : nullptr;
    T* dx = args.outputs[0].as<T>();
    T* dweight = args.outputs[1].as<T>();
    T* dbias = args.outputs[2].as<T>();
    T* dz = residual ? args.outputs[3].as<T>() : nullptr;
    auto* sums = reinterpret_cast<double*>(args.workspace.data());
    T* mean_dz = reinterpret_cast<T*>(sums + threads * 2 * e.channels);
    T* slope = mean_dz + e.channels;
    T* scale = slope + e.channels;

    const auto masked = [=](std::int64_t i) { return y != nullptr && y[i] <= T{0} ? T{0} : dy[i]; };
    if (dz !=
        nullptr)  // padding too: the residual branch of a sample without weight gets its zeros
      cpu::parallel_for(threads, e.samples * e.rows * e.channels,
                        [=](std::int64_t begin, std::int64_t end, int) {
                          for (std::int64_t i = begin; i < end; ++i) dz[i] = masked(i);
                        });
    sum_samples(e, threads, weights, sums, [&](std::int64_t n, double* into) {
      const std::int64_t first = n * e.rows * e.channels;
      sum_rows(e.rows, e.channels, into,
               [=, channels = e.channels](std::int64_t i, std::int64_t c) {
                 const std::int64_t at = first + i * channels + c;
                 const double d = static_cast<double>(dz != nullptr ? dz[at] : masked(at));
                 return Terms{d, d * static_cast<double>(x[at] - mean[c])};
               });
    });

    const double count = std::max(count_of(e, weights), 1.0);
    for (std::int64_t c = 0; c < e.channels; ++c) {
      const double i = static_cast<double>(inverse[c]);
      dbias[c] = static_cast<T>(sums[c]);
      dweight[c] = static_cast<T>(sums[e.channels + c] * i);
      mean_dz[c] = static_cast<T>(sums[c] / count);
      slope[c] = static_cast<T>(sums[e.channels + c] * i * i / count);
      scale[c] = static_cast<T>(static_cast<double>(weight[c]) * i);
    }
    cpu::parallel_for(
        threads, e.samples, [=, channels = e.channels](std::int64_t begin, std::int64_t end, int) {
          for (std::int64_t n = begin; n < end; ++n) {
            const std::int64_t first = n * e.rows * channels, last = first + e.rows * channels;
            if (weights[n] == 0) {
              std::fill(dx + first, dx + last, T{0});
              continue;
            }
            for (std::int64_t i = first; i < last; i += channels)
              for (std::int64_t c = 0; c < channels; ++c) {
                const T d = dz != nullptr ? dz[i + c] : masked(i + c);
                dx[i + c] = scale[c] * (d - mean_dz[c] - (x[i + c] - mean[c]) * slope[c]);
              }
          }
        });
  };
  return {.run = run,
          .workspace_bytes =
              sums_bytes(e, threads) + static_cast<std::size_t>(3 * e.channels) * sizeof(T)};
}

template <class T>
Kernel inference(const Extents& e, double eps, bool relu, int threads) {
  const auto run = [=](const KernelArgs& args) {
    const T* weight = args.inputs[1].as<T>();
    const T* bias = args.inputs[2].as<T>();
    const T* mean = args.inputs[3].as<T>();
    const T* variance = args.inputs[4].as<T>();
    const T* addend = args.inputs.size() > 5 ? args.inputs[5].as<T>() : nullptr;
    T* scale = reinterpret_cast<T*>(args.workspace.data());
    T* shift = scale + e.channels;
    for (std::int64_t c = 0; c < e.channels; ++c) {
      const double factor =
          static_cast<double>(weight[c]) / std::sqrt(static_cast<double>(variance[c]) + eps);
      scale[c] = static_cast<T>(factor);
      shift[c] =
          static_cast<T>(static_cast<double>(bias[c]) - static_cast<double>(mean[c]) * factor);
    }
    normalize<T>(e, threads, relu, nullptr, args.inputs[0].as<T>(), scale, shift, addend,
                 args.outputs[0].as<T>());
  };
  return {.run = run, .workspace_bytes = static_cast<std::size_t>(2 * e.channels) * sizeof(T)};
}

template <class T>
Kernel running_average(const std::vector<double>& segments) {
  return {.run = [segments](const KernelArgs& args) {
    if (args.state->skip != 0) return;
    for (std::size_t s = 0; s < segments.size(); s += 3) {
      const auto offset = static_cast<std::size_t>(segments[s]);
      const auto channels = static_cast<std::size_t>(segments[s + 1]);
      const double momentum = segments[s + 2];
      const T* sums = args.inputs[0].as<T>() + offset;
      T* averages = args.outputs[0].as<T>() + offset;
      const double count = static_cast<double>(sums[2 * channels]);
      if (count == 0) continue;
      for (std::size_t i = 0; i < 2 * channels; ++i)
        averages[i] = static_cast<T>((1 - momentum) * static_cast<double>(averages[i]) +
                                     momentum * (static_cast<double>(sums[i]) / count));
    }
  }};
}

Kernel batchnorm_factory(const OpSignature& s, const KernelContext& context) {
  const Extents e = channel_extents(s.inputs[0]);
  const double eps = s.attributes.real("eps");
  return s.inputs[0].dtype == DType::kF64
             ? forward<double>(e, eps, flag(s.attributes, "relu"), context.threads)
             : forward<float>(e, eps, flag(s.attributes, "relu"), context.threads);
}
DDP_REGISTER_CPU_KERNEL("batchnorm", batchnorm_factory);

Kernel batchnorm_backward_factory(const OpSignature& s, const KernelContext& context) {
  const Extents e = channel_extents(s.inputs[1]);
  const bool relu = flag(s.attributes, "relu"), residual = flag(s.attributes, "residual");
  return s.inputs[1].dtype == DType::kF64 ? backward<double>(e, relu, residual, context.threads)
                                          : backward<float>(e, relu, residual, context.threads);
}
DDP_REGISTER_CPU_KERNEL("batchnorm_backward", batchnorm_backward_factory);

Kernel batchnorm_inference_factory(const OpSignature& s, const KernelContext& context) {
  const Extents e = channel_extents(s.inputs[0]);
  const double eps = s.attributes.real("eps");
  return s.inputs[0].dtype == DType::kF64
             ? inference<double>(e, eps, flag(s.attributes, "relu"), context.threads)
             : inference<float>(e, eps, flag(s.attributes, "relu"), context.threads);
}
DDP_REGISTER_CPU_KERNEL("batchnorm_inference", batchnorm_inference_factory);

Kernel running_average_factory(const OpSignature& s, const KernelContext&) {
  const std::vector<double>& segments = s.attributes.list("segments");
  return s.outputs[0].dtype == DType::kF64 ? running_average<double>(segments)
                                           : running_average<float>(segments);
}
DDP_REGISTER_CPU_KERNEL("running_average", running_average_factory);

}  // namespace
}  // namespace ddp
