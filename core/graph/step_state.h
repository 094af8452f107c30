// StepState: every scalar of an optimizer step, in one struct in device memory, so that a step
// needs no host decision and can be captured. Kernels write it, one fp64 all-reduce sums its first
// `kSummed` doubles over the ranks after the last bucket, and the host reads it after the step.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ddp {

struct StepState {
  // Summed over micro-steps by the `score` op and over ranks by the state CommStep.
  double loss_sum = 0;      ///< Σ weight · loss
  double weight_sum = 0;    ///< Σ weight: the true item count
  double correct_top1 = 0;  ///< Σ weight [label is the largest logit]; integers, exact in double
  double correct_top5 = 0;  ///< Σ weight [label is among the five largest]
  double nonfinite = 0;     ///< samples whose loss is NaN or infinite
  double stop_votes =
      0;  ///< ranks that want to stop after this step; written by the host before the step
  double evaluate_votes =
      0;  ///< rank 0's clock says that an evaluation is due; written by the host as well
  static constexpr std::size_t kSummed = 7;

  // Equal on all ranks without communication: computed from the sums and the reduced gradients.
  double gradient_norm = 0;   ///< global L2 norm of the mean gradient, before clipping
  double gradient_scale = 0;  ///< what the optimizer multiplies the summed gradient by
  double learning_rate = 0;   ///< of this step's update
  double skip = 0;            ///< 1: this step's update must not be applied
  double diverged = 0;        ///< sticky under --on-nan stop: no later update is applied
  std::uint64_t step = 0;     ///< optimizer step being computed, from 1; `begin_step` increments it
  std::uint64_t update = 0;   ///< updates applied so far; the schedule and Adam's t count these
};

}  // namespace ddp
