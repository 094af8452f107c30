// begin_step and finish_step: the scalars around the update.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/backend/cpu/parallel.h"
#include "core/ops/optimizer/optimizer.h"
#include "core/ops/optimizer/segments.h"
#include "core/ops/optimizer/sum_of_squares.h"

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

LrSchedule schedule_from(const Attributes& attributes) {
  const auto updates = [&](std::string_view name) {
    return static_cast<std::uint64_t>(attributes.integer(name));
  };
  LrSchedule schedule{.kind = lr_kind(attributes.text("schedule")),
                      .lr = attributes.real("lr"),
                      .min_lr = attributes.real("min_lr"),
                      .warmup_updates = updates("warmup_updates"),
                      .total_updates = updates("total_updates"),
                      .step_every = updates("step_every"),
                      .gamma = attributes.real("gamma"),
                      .power = attributes.real("power")};
  for (const double milestone : attributes.list("milestones"))
    add_milestone(schedule, static_cast<std::uint64_t>(milestone));
  return schedule;
}

FinishStepOptions options_from(const Attributes& attributes) {
  return {.nominal = attributes.real("nominal"),
          .clip_norm = attributes.real("clip_norm"),
          .stop_on_nan = attributes.text("on_nan") == "stop",
          .schedule = schedule_from(attributes)};
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
  const std::int64_t blocks = norm_blocks(elements);
  return {.run =
              [=](const KernelArgs& args) {
                const T* gradient = args.inputs[0].as<T>();
                auto* partial = reinterpret_cast<double*>(args.workspace.data());
                cpu::parallel_for(threads, blocks, [=](std::int64_t begin, std::int64_t end, int) {
                  for (std::int64_t b = begin; b < end; ++b)
                    partial[b] = sum_of_squares(gradient + b * kNormBlock,
                                                std::min(kNormBlock, elements - b * kNormBlock));
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
