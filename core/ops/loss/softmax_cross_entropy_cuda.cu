// A team of threads has a row of logits and keeps it in registers. The maximum is kept apart from
// the logarithm of the sum, as in the CPU kernel. NaN is no candidate for the maximum, but makes
// the sum NaN.
#include <limits>

#include "core/ops/packed.cuh"
#include "core/ops/row_team.cuh"

namespace ddp {
namespace {

using namespace cuda;

/// A row of logits x, from which -log softmax(x)_j = (largest - x_j) + log_sum. Every thread of the
/// team must make one.
template <class T, class Team>
class LogitsRow {
  static constexpr int kN = Team::kN;

 public:
  __device__ LogitsRow(const T* x, std::int64_t classes) : x_(x), classes_(classes) {
    largest_ = -std::numeric_limits<float>::infinity();
    Team::for_each_pack(classes, [&](int i, std::int64_t column) {
      kept_[i] = Packed<T, kN>(x + column);
      for (int j = 0; j < kN; ++j) largest_ = fmaxf(largest_, kept_[i][j]);
    });
    largest_ = Team::largest(largest_);
    log_sum_ = static_cast<float>(log(sum([](float below) { return expf(-below); })));
  }
  __device__ float negative_log(float logit) const { return (largest_ - logit) + log_sum_; }
  __device__ float log_sum() const { return log_sum_; }

  /// Sum of f(largest - x_j), on every thread of the team.
  template <class F>
  __device__ double sum(const F& f) {
    double total = 0;
    for_each_pack([&](std::int64_t, const Packed<T, kN>& logits) {
      float sum = 0;
      for (int j = 0; j < kN; ++j) sum += f(largest_ - logits[j]);
      total += sum;
    });
    return Team::sum(total);
  }
  /// Calls f(class, logits from it on) for each pack of this thread.
  template <class F>
  __device__ void for_each_pack(const F& f) {
    Team::for_each_pack(classes_, [&](int i, std::int64_t column) {
      if constexpr (!Team::kIsKept) kept_[i] = Packed<T, kN>(x_ + column);
      f(column, kept_[i]);
    });
  }

 private:
  const T* x_;
  std::int64_t classes_;
  Packed<T, kN> kept_[Team::kPacks];
  float largest_, log_sum_;
};

template <class T, class Team>
__global__ void __launch_bounds__(Team::kThreads)
    forward_kernel(RowExtents e, double smoothing, const T* logits, const std::int32_t* labels,
                   const float* weights, float* losses) {
  for (std::int64_t row = Team::first_row(); row < e.rows; row += Team::row_stride()) {
    const float weight = weights[row];
    if (weight == 0) {
      if (Team::lane() == 0) losses[row] = 0;
      continue;
    }
    const T* x = logits + row * e.columns;
    LogitsRow<T, Team> values(x, e.columns);
    float loss = values.negative_log(to_float(x[labels[row]]));
    if (smoothing != 0) {
      const double classes = static_cast<double>(e.columns);
      const double mean = values.sum([](float below) { return below; }) / classes +
                          static_cast<double>(values.log_sum());
      loss = static_cast<float>((1 - smoothing) * loss + smoothing * mean);
    }
    if (Team::lane() == 0) losses[row] = weight * loss;
  }
}

/// dx may lie over the logits.
template <class T, class Team>
__global__ void __launch_bounds__(Team::kThreads)
    backward_kernel(RowExtents e, float everywhere, float at_label, const float* dloss,
                    const T* logits, const std::int32_t* labels, const float* weights, T* dx) {
  constexpr int kN = Team::kN;
  for (std::int64_t row = Team::first_row(); row < e.rows; row += Team::row_stride()) {
    T* gradients = dx + row * e.columns;
    if (weights[row] == 0) {
      Team::for_each_pack(e.columns, [&](int, std::int64_t column) {
        Pack<T, kN> zeros;
        for (int j = 0; j < kN; ++j) zeros.element[j] = from_float<T>(0.0F);
        store(gradients + column, zeros);
      });
      continue;
    }
    const float scale = dloss[row] * weights[row];
    const std::int64_t label = labels[row];
    LogitsRow<T, Team> values(logits + row * e.columns, e.columns);
    values.for_each_pack([&](std::int64_t column, const Packed<T, kN>& pack) {
      Pack<T, kN> result;
      for (int j = 0; j < kN; ++j) {
        const float target = column + j == label ? everywhere + at_label : everywhere;
        result.element[j] = from_float<T>(scale * (expf(-values.negative_log(pack[j])) - target));
      }
      store(gradients + column, result);
    });
  }
}

Kernel loss_factory(const OpSignature& s, const KernelContext& context) {
  const double smoothing = s.attributes.real("label_smoothing");
  const RowExtents e = row_extents(s.inputs[0]);
  return with_team(s.inputs[0].dtype, e.columns, [&](auto type, auto team) -> Kernel {
    using T = decltype(type);
    using Team = decltype(team);
    const int blocks = team_blocks<Team>(*context.gpu, e.rows);
    const auto run = [=](const KernelArgs& args) {
      forward_kernel<T, Team><<<blocks, Team::kThreads, 0, stream_of(args)>>>(
          e, smoothing, args.inputs[0].as<T>(), args.inputs[1].as<std::int32_t>(),
          args.inputs[2].as<float>(), args.outputs[0].as<float>());
      check_launch("softmax_cross_entropy");
    };
    return {.run = run, .algorithm = Team::name()};
  });
}
DDP_REGISTER_CUDA_KERNEL("softmax_cross_entropy", loss_factory);

Kernel loss_backward_factory(const OpSignature& s, const KernelContext& context) {
  const double smoothing = s.attributes.real("label_smoothing");
  const RowExtents e = row_extents(s.inputs[1]);
  const auto everywhere = static_cast<float>(smoothing / static_cast<double>(e.columns));
  const auto at_label = static_cast<float>(1 - smoothing);
  return with_team(s.inputs[1].dtype, e.columns, [&](auto type, auto team) -> Kernel {
    using T = decltype(type);
    using Team = decltype(team);
    const int blocks = team_blocks<Team>(*context.gpu, e.rows);
    const auto run = [=](const KernelArgs& args) {
      backward_kernel<T, Team><<<blocks, Team::kThreads, 0, stream_of(args)>>>(
          e, everywhere, at_label, args.inputs[0].as<float>(), args.inputs[1].as<T>(),
          args.inputs[2].as<std::int32_t>(), args.inputs[3].as<float>(), args.outputs[0].as<T>());
      check_launch("softmax_cross_entropy_backward");
    };
    return {.run = run, .algorithm = Team::name()};
  });
}
DDP_REGISTER_CUDA_KERNEL("softmax_cross_entropy_backward", loss_backward_factory);

}  // namespace
}  // namespace ddp
