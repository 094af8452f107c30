// The same elements under another shape. A view: the plan gives output and input one memory and
// runs no kernel. Models call it between convolutions and matrices.
#pragma once

#include "core/graph/graph.h"

namespace ddp {

/// `x` as `shape`, which must have as many elements. Throws ConfigError otherwise.
Value reshape(Value x, const Shape& shape);

/// [N, …] -> [N, product of the rest].
Value flatten(Value x);

}  // namespace ddp
