// Exponential moving averages, the same code on the CPU and the GPU: an update whose gradient is
// the value to average, over the whole slab.
#pragma once

#include <cmath>

#include "core/graph/step_state.h"
#include "core/ops/optimizer/host_device.h"
#include "core/ops/optimizer/optimizer.h"

namespace ddp {

// The difference form: the average of a constant is exactly that constant.
template <class T>
struct EmaUpdate {
  T step;

  DDP_HOST_DEVICE void operator()(T value, T& average) const {
    average += step * (value - average);
  }
};

struct EmaStep {
  static constexpr std::size_t kSlabs = 1;  ///< averages
  double step;

  DDP_HOST_DEVICE static EmaStep of(double decay, const StepState& state) {
    const double updates = static_cast<double>(state.update);
    return {1 - std::fmin(decay, (1 + updates) / (10 + updates))};
  }
  template <class T>
  DDP_HOST_DEVICE EmaUpdate<T> update(const OptimizerSegment&) const {
    return {static_cast<T>(step)};
  }
};

}  // namespace ddp
