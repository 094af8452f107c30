#include "core/plan/plan.h"

namespace ddp {

std::string_view name_of(Region region) {
  switch (region) {
    case Region::kArena: return "arena";
    case Region::kInput: return "input";
    case Region::kParameters: return "parameters";
    case Region::kComputeParameters: return "compute parameters";
    case Region::kGradients: return "gradients";
    case Region::kOptimizer: return "optimizer";
    case Region::kBuffers: return "buffers";
    case Region::kStatistics: return "statistics";
    case Region::kAverage: return "average";
    case Region::kState: return "state";
  }
  return "?";
}

}  // namespace ddp
