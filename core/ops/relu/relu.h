// Rectified linear unit. NaN passes through, forward and backward, so that a diverged run is seen.
#pragma once

#include <string>

#include "core/graph/graph.h"

namespace ddp {

/// max(x, 0), of the shape of x. Backward needs y only, so x may die or be overwritten at once. The
/// op is called `name`, or "relu<n>".
Value relu(Value x, const std::string& name = {});

}  // namespace ddp
