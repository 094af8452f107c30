// The ops of an optimizer step on the flat slabs: begin_step, commit, finish_step, one update (sgd,
// lars, adamw or lion) and ema. They are no part of a model graph: the plan writer makes their
// signatures from the attributes here and from slab types, in that order in a step. What they
// compute from summed gradients is the same on all ranks, for any number of threads.
//
//   op           inputs                  outputs
//   begin_step   none                    none: clears the sums of StepState (not the votes), counts
//                                        the step
//   commit       gradient contributions  slab ranges: stores or adds each contribution
//   finish_step  gradient slab           none: norm, clipping, learning rate, skip and diverged of
//                                        StepState
//   sgd, lars    gradient slab           parameters, momentum (read and written)
//   adamw        gradient slab           parameters, first and second moment (read and written)
//   lion         gradient slab           parameters, momentum (read and written)
//   ema          a slab                  its moving average (read and written)
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
/// and never touched by updates.
struct OptimizerSegment {
  std::size_t begin = 0, end = 0;
  double weight_decay = 0;
  double lr_scale = 1;  ///< factor of the learning rate
  bool adapt = true;    ///< lars adapts the learning rate to this parameter's norms
};

struct SgdOptions {
  double momentum = 0;
  bool nesterov = false;
};
/// torch.optim.SGD with dampening 0: d = g + decay · p, m = momentum · m + d, p -= lr · (nesterov ?
/// d + momentum · m : m). The momentum slab starts as zero.
Attributes sgd_attributes(const SgdOptions& options, const std::vector<OptimizerSegment>& segments);

struct LarsOptions {
  double momentum = 0.9, trust = 0.001;
};
/// You, Gitman and Ginsburg, "Large Batch Training of Convolutional Networks", 2017: sgd without
/// Nesterov whose d = g + decay · p is multiplied by trust · |p| / (|g| + decay · |p|), norms over
/// one segment; by 1 where a norm is 0 and in segments that do not adapt.
Attributes lars_attributes(const LarsOptions& options,
                           const std::vector<OptimizerSegment>& segments);

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
};
/// torch.optim.AdamW (Loshchilov and Hutter, ICLR 2019): decay of p by lr · decay, then Adam with
/// bias correction, whose t is StepState::update. Both moment slabs start as zero.
Attributes adamw_attributes(const AdamWOptions& options,
                            const std::vector<OptimizerSegment>& segments);

struct LionOptions {
  double beta1 = 0.9, beta2 = 0.99;
};
/// Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023: decay of p by lr · decay,
/// then p -= lr · sign(beta1 · m + (1 - beta1) · g), with sign(0) = 0, and m = beta2 · m + (1 -
/// beta2) · g.
Attributes lion_attributes(const LionOptions& options,
                           const std::vector<OptimizerSegment>& segments);

/// average += (1 - d) · (value - average) with d = min(decay, (1 + u) / (10 + u)) after u updates,
/// so that the first updates do not drag the start along. Nothing when StepState::skip is set.
Attributes ema_attributes(double decay);

}  // namespace ddp
