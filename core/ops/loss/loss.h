// The classification loss and its score. A sample of weight zero is padding: its loss and gradient
// are exactly zero and it is counted nowhere, whatever its logits are. Losses are sums, never
// means: the optimizer divides by the true count.
#pragma once

#include "core/graph/graph.h"

namespace ddp {

struct LossOptions {
  double label_smoothing = 0;  ///< s in [0, 1]
};

/// weight · cross-entropy between softmax(logits) and (1 - s) onehot(label) + s / C, as PyTorch
/// defines it. logits: [N, C]; labels: [N] I32 in [0, C), which the data set guarantees; weights:
/// [N] F32. Result: [N], of the type of the logits. Throws ConfigError when shapes or smoothing are
/// not legal.
Value softmax_cross_entropy(Value logits, Value labels, Value weights,
                            const LossOptions& options = {});

/// Adds the micro-batch to StepState: loss_sum, weight_sum, correct_top1, correct_top5, nonfinite.
/// `losses` are those of softmax_cross_entropy. A label is among the top k when fewer than k logits
/// come before it, larger ones first and equal ones in the order of their classes; a sample with a
/// NaN logit is never correct. `exact` (evaluation) rounds each loss to a multiple of 2^-28 first,
/// so that the sum is exact, and independent of order and ranks, while it stays below 2^25.
void score(Value losses, Value logits, Value labels, Value weights, bool exact);

/// What predict() says of a sample with a NaN among its logits.
inline constexpr std::int32_t kNoPrediction = -1;

/// The class with the largest logit, the lowest of equal ones: [N] I32 of logits [N, C]. It is the
/// label exactly for the samples that score() counts as correct_top1.
Value predict(Value logits);

}  // namespace ddp
