// Element-wise sum of two values of the same type: residual connections, and the sum of gradients
// of a value that has several users.
#pragma once

#include "core/graph/graph.h"

namespace ddp {

/// a + b; throws ConfigError when the types differ (nothing is broadcast).
Value add(Value a, Value b);

}  // namespace ddp
