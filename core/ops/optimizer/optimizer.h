// The ops of an optimizer step on the flat slabs: begin_step, commit, finish_step and sgd or adamw.
// They are no part of a model graph: the plan writer makes their signatures from the attributes
// here and from slab types, in that order in a step. What they compute from summed gradients is the
// same on all ranks, for any number of threads.
//
//   op          inputs                  outputs
//   begin_step  none                    none         clears the sums of StepState (not stop_votes),
//   counts the step commit      gradient contributions  slab ranges  stores or adds each
//   contribution finish_step gradient slab           none         norm, clipping, learning rate,
//   skip and diverged of StepState sgd         gradient slab           parameters, momentum (read
//   and written) adamw       gradient slab           parameters, first moment, second moment (read
//   and written)
#pragma once

#include <cstddef>
#include <vector>

#include "core/graph/attributes.h"
#include "core/ops/optimizer/lr_schedule.h"

namespace ddp {

/// Contribution i goes to output targets[i], which has as many elements. The first contribution to
/// an output replaces what is there, unless `accumulate` (a later micro-step); the others (tied
/// weights) add.
Attributes commit_attributes(const std::vector<std::size_t>& targets, bool accumulate);

struct FinishStepOptions {
  double nominal = 1;       ///< item count that the seed of the loss gradient was divided by
  double clip_norm = 0;     ///< largest norm of the mean gradient; 0: no clipping
  bool stop_on_nan = true;  ///< a step that is not finite sets `diverged`; otherwise only its own
                            ///< update is skipped
  LrSchedule schedule;
};
/// The mean gradient is the summed gradient times nominal / weight_sum. A step is skipped when its
/// loss or gradient is not finite, when it has no items, and after the run has diverged; only
/// updates that are not skipped are counted.
Attributes finish_step_attributes(const FinishStepOptions& options);

/// One parameter in the slabs: elements [begin, end). Elements outside of all segments are padding
/// and never touched.
struct OptimizerSegment {
  std::size_t begin = 0, end = 0;
  double weight_decay = 0;
};

struct SgdOptions {
  double momentum = 0;
  bool nesterov = false;
};
/// torch.optim.SGD with dampening 0: d = g + decay · p, m = momentum · m + d, p -= lr · (nesterov ?
/// d + momentum · m : m). The momentum slab starts as zero.
Attributes sgd_attributes(const SgdOptions& options, const std::vector<OptimizerSegment>& segments);

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
};
/// torch.optim.AdamW (Loshchilov and Hutter, ICLR 2019): decay of p by lr · decay, then Adam with
/// bias correction, whose t is StepState::update. Both moment slabs start as zero.
Attributes adamw_attributes(const AdamWOptions& options,
                            const std::vector<OptimizerSegment>& segments);

}  // namespace ddp
