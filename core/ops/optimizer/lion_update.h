// Lion, the same code on the CPU and the GPU.
#pragma once

#include "core/graph/step_state.h"
#include "core/ops/optimizer/host_device.h"
#include "core/ops/optimizer/optimizer.h"

namespace ddp {

/// One element's step with the factors of a segment: `keep` is 1 - lr · decay.
template <class T>
struct LionUpdate {
  T scale, beta1, rest1, beta2, rest2, keep, step;

  DDP_HOST_DEVICE void operator()(T gradient, T& parameter, T& momentum) const {
    const T g = gradient * scale;
    const T direction = beta1 * momentum + rest1 * g;
    const T sign = static_cast<T>(direction > 0) - static_cast<T>(direction < 0);
    parameter = keep * parameter - step * sign;
    momentum = beta2 * momentum + rest2 * g;
  }
};

/// What all segments share in one step.
struct LionStep {
  static constexpr std::size_t kSlabs = 2;  ///< parameters, momentum
  double beta1, beta2, scale, learning_rate;

  DDP_HOST_DEVICE static LionStep of(const LionOptions& options, const StepState& state) {
    return {options.beta1, options.beta2, state.gradient_scale, state.learning_rate};
  }
  template <class T>
  DDP_HOST_DEVICE LionUpdate<T> update(const OptimizerSegment& segment) const {
    const double lr = learning_rate * segment.lr_scale;
    return {.scale = static_cast<T>(scale),
            .beta1 = static_cast<T>(beta1),
            .rest1 = static_cast<T>(1 - beta1),
            .beta2 = static_cast<T>(beta2),
            .rest2 = static_cast<T>(1 - beta2),
            .keep = static_cast<T>(1 - lr * segment.weight_decay),
            .step = static_cast<T>(lr)};
  }
};

}  // namespace ddp
