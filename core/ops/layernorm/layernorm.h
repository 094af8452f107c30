// Layer normalisation over the innermost axis (Ba, Kiros and Hinton, 2016), as PyTorch's LayerNorm
// of one axis. Each row has its own statistics, so nothing depends on the batch, and training and
// evaluation are the same.
#pragma once

#include <string>

#include "core/graph/graph.h"

namespace ddp {

struct LayerNorm {
  std::string name;
  double eps = 1e-5;
};

/// y = (x - mean) / sqrt(variance + eps) · weight + bias for x [..., D], with mean and biased
/// variance of each row of D. Parameters "<name>.weight" (ones) and "<name>.bias" (zeros) [D];
/// files hold them as memory does, except behind a flattened image, where they are in the order C,
/// H, W like the columns of a linear layer. ConfigError for a scalar and for rows without elements.
///
/// The op "layernorm" also gives mean and 1/deviation, one of each for each row, which
/// "layernorm_backward"(dy, x, weight, mean, 1/deviation) -> {dx, dweight, dbias} takes.
Value layernorm(Value x, const LayerNorm& layer);

}  // namespace ddp
