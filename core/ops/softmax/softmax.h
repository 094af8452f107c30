// Softmax over the innermost axis: rows of scores become rows of probabilities. For attention and
// the like; a classifier's loss is softmax_cross_entropy, which keeps the logarithm.
#pragma once

#include <string>

#include "core/graph/graph.h"

namespace ddp {

/// y[..., i] = exp(x[..., i]) / Σ_j exp(x[..., j]), computed with x minus the largest of its row,
/// so that large scores do not overflow. A score of -infinity gets 0; a NaN or +infinity makes its
/// row NaN, and so do scores that are all -infinity, as in PyTorch. Backward needs y only, so x may
/// die or be overwritten at once. The op is called "softmax<n>" without a name; ConfigError for a
/// scalar and for rows without elements.
Value softmax(Value x, const std::string& name = {});

}  // namespace ddp
