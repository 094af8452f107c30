// Bias: adds one number per channel (the innermost axis). It is an op of its own, so that
// convolution and linear layers share it, and passes may fuse it into the op in front.
#pragma once

#include <string>

#include "core/graph/graph.h"

namespace ddp {

/// x + b for x [..., C] and its parameter "<name>.bias" [C]. Behind a convolution or a linear layer
/// it starts uniform within 1/sqrt(fan-in of that layer), PyTorch's default; elsewhere with zeros.
///
/// The gradient is the op "bias_backward"(dy) -> db. "bias_relu_backward"(dy, y) -> {dz, db} is the
/// gradient of y = max(x + b, 0) in one pass over memory, for graphs that were fused after
/// differentiation; dz may overwrite dy.
Value bias(Value x, const std::string& name);

}  // namespace ddp
