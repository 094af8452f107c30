// What begin_step and finish_step do to StepState, the same code on the CPU and the GPU.
#pragma once

#include <cmath>

#include "core/graph/step_state.h"
#include "core/ops/optimizer/host_device.h"
#include "core/ops/optimizer/optimizer.h"

namespace ddp {

DDP_HOST_DEVICE inline void begin_step(StepState& state) {
  state.loss_sum = state.weight_sum = state.correct_top1 = state.correct_top5 = state.nonfinite = 0;
  ++state.step;
}

/// Decides about the update, given the norm of the summed gradient.
DDP_HOST_DEVICE inline void finish_step(StepState& state, double summed_norm,
                                        const FinishStepOptions& options) {
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

}  // namespace ddp
