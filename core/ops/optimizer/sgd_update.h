// SGD with momentum, the same code on the CPU and the GPU. Lars takes the same step with other
// factors.
#pragma once

#include "core/graph/step_state.h"
#include "core/ops/optimizer/host_device.h"
#include "core/ops/optimizer/optimizer.h"

namespace ddp {

/// One element's step: d = scale · g + decay · p, m = momentum · m + d, p -= of_gradient · d +
/// of_momentum · m. The factors are those of a segment.
template <class T>
struct SgdUpdate {
  T scale, decay, momentum, of_gradient, of_momentum;

  DDP_HOST_DEVICE void operator()(T gradient, T& parameter, T& m) const {
    const T d = gradient * scale + decay * parameter;
    m = momentum * m + d;
    parameter -= of_gradient * d + of_momentum * m;
  }
};

/// What all segments share in one step.
struct SgdStep {
  static constexpr std::size_t kSlabs = 2;  ///< parameters, momentum
  double momentum, scale, learning_rate;
  bool nesterov;

  DDP_HOST_DEVICE static SgdStep of(const SgdOptions& options, const StepState& state) {
    return {options.momentum, state.gradient_scale, state.learning_rate, options.nesterov};
  }
  template <class T>
  DDP_HOST_DEVICE SgdUpdate<T> update(const OptimizerSegment& segment) const {
    const double lr = learning_rate * segment.lr_scale;
    return {.scale = static_cast<T>(scale),
            .decay = static_cast<T>(segment.weight_decay),
            .momentum = static_cast<T>(momentum),
            .of_gradient = static_cast<T>(nesterov ? lr : 0),
            .of_momentum = static_cast<T>(nesterov ? lr * momentum : lr)};
  }
};

}  // namespace ddp
