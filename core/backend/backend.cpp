#include "core/backend/backend.h"

namespace ddp {

PhaseTimes operator+(const PhaseTimes& a, const PhaseTimes& b) {
  return {.forward = a.forward + b.forward,
          .backward = a.backward + b.backward,
          .exposed = a.exposed + b.exposed,
          .optimizer = a.optimizer + b.optimizer};
}

PhaseTimes operator-(const PhaseTimes& later, const PhaseTimes& earlier) {
  return {.forward = later.forward - earlier.forward,
          .backward = later.backward - earlier.backward,
          .exposed = later.exposed - earlier.exposed,
          .optimizer = later.optimizer - earlier.optimizer};
}

PhaseTimes phase_times_of(const std::array<double, kActivityCount>& seconds) {
  const auto of = [&](Activity activity) { return seconds[static_cast<std::size_t>(activity)]; };
  return {.forward = of(Activity::kForward),
          .backward = of(Activity::kBackward),
          .exposed = of(Activity::kExposed),
          .optimizer = of(Activity::kOptimizer)};
}

}  // namespace ddp
