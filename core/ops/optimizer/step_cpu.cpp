// begin_step and finish_step: the scalars around the update.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/backend/cpu/parallel.h"
#include "core/ops/optimizer/optimizer.h"
#include "core/ops/optimizer/segments.h"

namespace ddp {
namespace {

Kernel begin_step_factory(const OpSignature&, const KernelContext&) {
  return {.run = [](const KernelArgs& args) {
    StepState& state = *args.state;
    state.loss_sum = state.weight_sum = state.correct_top1 = state.correct_top5 = state.nonfinite =
        0;
    ++state.step;
  }};
}

/// Elements whose squares make one partial sum. Fixed, so that the norm does not depend on the
/// number of threads, which may differ between ranks: replicas that clipped by different norms
/// would drift apart.
constexpr std::int64_t kBlock = 16384;

template <class T>
double sum_of_squares(const T* x, std::int64_t n) {
  std::array<double, 16> lanes{};  // independent sums, so that the compiler may use vectors
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (std::int64_t lane = 0; lane < 16; ++lane) {
      const double v = static_cast<double>(x[i + lane]);
      lanes[static_cast<std::size_t>(lane)] += v * v;
    }
  for (; i < n; ++i) lanes[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return std::accumulate(lanes.begin(), lanes.end(), 0.0);
}

FinishStepOptions options_from(const Attributes& attributes) {
  return {.nominal = attributes.real("nominal"),
          .clip_norm = attributes.real("clip_norm"),
          .stop_on_nan = attributes.text("on_nan") == "stop",
          .schedule = {
              .kind = lr_kind(attributes.text("schedule")),
              .lr = attributes.real("lr"),
              .min_lr = attributes.real("min_lr"),
              .warmup_updates = static_cast<std::uint64_t>(attributes.integer("warmup_updates")),
              .total_updates = static_cast<std::uint64_t>(attributes.integer("total_updates"))}};
}

/// Decides about the update, given the norm of the summed gradient.
void finish(StepState& state, double summed_norm, const FinishStepOptions& options) {
  const bool has_items = state.weight_sum > 0;
  const double to_mean = has_items ? options.nominal / state.weight_sum : 0;
  state.gradient_norm = summed_norm * to_mean;
  const bool clip = options.clip_norm > 0 && state.gradient_norm > options.clip_norm;
  state.gradient_scale = clip ? to_mean * (options.clip_norm / state.gradient_norm) : to_mean;
  state.learning_rate = learning_rate(options.schedule, state.update);
  const bool finite =
      std::isfinite(state.loss_sum) && std::isfinite(state.gradient_norm) && state.nonfinite == 0;
  if (!finite && options.stop_on_nan) state.diverged = 1;
  state.skip = !finite || !has_items || state.diverged != 0 ? 1 : 0;
  if (state.skip == 0) ++state.update;
}

template <class T>
Kernel finish_step(std::int64_t elements, const FinishStepOptions& options, int threads) {
  const std::int64_t blocks = (elements + kBlock - 1) / kBlock;
  return {.run =
              [=](const KernelArgs& args) {
                const T* gradient = args.inputs[0].as<T>();
                auto* partial = reinterpret_cast<double*>(args.workspace.data());
                cpu::parallel_for(threads, blocks, [=](std::int64_t begin, std::int64_t end, int) {
                  for (std::int64_t b = begin; b < end; ++b)
                    partial[b] = sum_of_squares(gradient + b * kBlock,
                                                std::min(kBlock, elements - b * kBlock));
                });
                finish(*args.state, std::sqrt(std::accumulate(partial, partial + blocks, 0.0)),
                       options);
              },
          .workspace_bytes = static_cast<std::size_t>(blocks) * sizeof(double)};
}

Kernel finish_step_factory(const OpSignature& s, const KernelContext& context) {
  check_slabs(s, 0);
  const FinishStepOptions options = options_from(s.attributes);
  const std::int64_t elements = s.inputs[0].elements();
  return s.inputs[0].dtype == DType::kF64 ? finish_step<double>(elements, options, context.threads)
                                          : finish_step<float>(elements, options, context.threads);
}

DDP_REGISTER_CPU_KERNEL("begin_step", begin_step_factory);
DDP_REGISTER_CPU_KERNEL("finish_step", finish_step_factory);

}  // namespace
}  // namespace ddp
