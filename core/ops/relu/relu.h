// Rectified linear unit. NaN passes through, forward and backward, so that a diverged run is seen.
#pragma once

#include "core/graph/graph.h"

namespace ddp {

/// max(x, 0), of the shape of x. Backward needs y only, so x may die or be overwritten at once.
Value relu(Value x);

}  // namespace ddp
