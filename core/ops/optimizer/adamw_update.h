// AdamW, the same code on the CPU and the GPU.
#pragma once

#include <cmath>

#include "core/graph/step_state.h"
#include "core/ops/optimizer/host_device.h"
#include "core/ops/optimizer/optimizer.h"

namespace ddp {

/// One element's step with the factors of a segment: `keep` is 1 - lr · decay, `step` is lr over
/// the bias correction of the first moment, `root` one over the root of that of the second.
template <class T>
struct AdamWUpdate {
  T scale, beta1, rest1, beta2, rest2, eps, keep, step, root;

  DDP_HOST_DEVICE void operator()(T gradient, T& parameter, T& first, T& second) const {
    const T g = gradient * scale;
    first = beta1 * first + rest1 * g;
    second = beta2 * second + rest2 * g * g;
    parameter = keep * parameter - step * first / (std::sqrt(second) * root + eps);
  }
};

/// What all segments share in one step.
struct AdamWStep {
  static constexpr std::size_t kSlabs = 3;  ///< parameters, first and second moment
  double beta1, beta2, eps, scale, learning_rate, correction, root;

  DDP_HOST_DEVICE static AdamWStep of(const AdamWOptions& options, const StepState& state) {
    const double t = static_cast<double>(state.update);
    return {.beta1 = options.beta1,
            .beta2 = options.beta2,
            .eps = options.eps,
            .scale = state.gradient_scale,
            .learning_rate = state.learning_rate,
            .correction = 1 - std::pow(options.beta1, t),
            .root = 1 / std::sqrt(1 - std::pow(options.beta2, t))};
  }
  template <class T>
  DDP_HOST_DEVICE AdamWUpdate<T> update(const OptimizerSegment& segment) const {
    const double lr = learning_rate * segment.lr_scale;
    return {.scale = static_cast<T>(scale),
            .beta1 = static_cast<T>(beta1),
            .rest1 = static_cast<T>(1 - beta1),
            .beta2 = static_cast<T>(beta2),
            .rest2 = static_cast<T>(1 - beta2),
            .eps = static_cast<T>(eps),
            .keep = static_cast<T>(1 - lr * segment.weight_decay),
            .step = static_cast<T>(lr / correction),
            .root = static_cast<T>(root)};
  }
};

}  // namespace ddp
