// Element-wise sum of two values of the same type: residual connections, and the sum of gradients
// of a value that has several users.
#pragma once

#include <string>

#include "core/graph/graph.h"

namespace ddp {

/// a + b; throws ConfigError when the types differ (nothing is broadcast). The op is called `name`,
/// or "add<n>".
Value add(Value a, Value b, const std::string& name = {});

}  // namespace ddp
