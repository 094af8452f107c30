// Lars: the rate of each segment from its norms, the same code on the CPU and the GPU.
#pragma once

#include <cmath>

#include "core/ops/optimizer/sgd_update.h"

namespace ddp {

/// Of the elements of one segment, or of a part of it.
struct SquareSums {
  double parameter, gradient;
};

struct LarsInputs {
  LarsOptions options;
  const OptimizerSegment* segments;
  const SquareSums* squares;  ///< one for each segment; unread where it does not adapt
};

/// What all segments share in one step.
struct LarsStep {
  static constexpr std::size_t kSlabs = SgdStep::kSlabs;
  double momentum, trust, scale, learning_rate;
  const OptimizerSegment* segments;
  const SquareSums* squares;

  DDP_HOST_DEVICE static LarsStep of(const LarsInputs& inputs, const StepState& state) {
    return {inputs.options.momentum, inputs.options.trust, state.gradient_scale,
            state.learning_rate,     inputs.segments,      inputs.squares};
  }
  /// What the step of a segment of the table is multiplied by.
  DDP_HOST_DEVICE double local_rate(const OptimizerSegment& segment) const {
    if (!segment.adapt) return 1;
    const SquareSums& sums = squares[&segment - segments];
    const double parameter = std::sqrt(sums.parameter);
    const double gradient = std::sqrt(sums.gradient) * scale;
    if (!(parameter > 0 && gradient > 0)) return 1;
    return trust * parameter / (gradient + segment.weight_decay * parameter);
  }
  template <class T>
  DDP_HOST_DEVICE SgdUpdate<T> update(const OptimizerSegment& segment) const {
    const double rate = local_rate(segment);
    return {.scale = static_cast<T>(rate * scale),
            .decay = static_cast<T>(rate * segment.weight_decay),
            .momentum = static_cast<T>(momentum),
            .of_gradient = 0,
            .of_momentum = static_cast<T>(learning_rate * segment.lr_scale)};
  }
};

}  // namespace ddp
