// Batch normalisation over all axes but the innermost (Ioffe and Szegedy, ICML 2015), as PyTorch's
// BatchNorm2d. Statistics are those of one micro-batch of one rank; what a step adds to the running
// averages is summed over micro-batches and ranks, so that these are the same on all ranks.
//
// The ops, in which relu and addend are there in fused graphs only:
// clang-format off
//   op                   inputs                                                   outputs
//   batchnorm            x, weight, bias, sample weights [, addend]               y, mean, 1/deviation, statistics
//   batchnorm_backward   dy, x, weight, mean, 1/deviation, sample weights [, y]   dx, dweight, dbias [, dz]
//   batchnorm_inference  x, weight, bias, mean, variance [, addend]               y
//   running_average      statistics slab                                          buffers slab (read and written)
// clang-format on
// With the attribute "relu" y is max(normalised + addend, 0) and the backward op takes y; with
// "residual" it also gives dz, the gradient of the sum in front of the relu. In training y is 0 for
// samples of weight 0, whatever x and the addend are: a micro-batch of padding only has no
// variance, and 1/sqrt(eps) from layer to layer would overflow.
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace ddp {

struct BatchNorm {
  std::string name;
  double eps = 1e-5;      ///< added to the variance, at least 0
  double momentum = 0.1;  ///< 0..1, weight of a step's own statistics in the running averages
};

/// y = (x - mean) / sqrt(variance + eps) · weight + bias for x [N, ..., C], with the mean and
/// biased variance of the micro-batch over all axes but C. Samples whose weight is 0 (padding) stay
/// out of the statistics, their y is 0 and they get no gradient. Parameters "<name>.weight" (ones)
/// and "<name>.bias" (zeros) [C]; adds running statistics, whose variance is unbiased, as
/// PyTorch's. ConfigError when a channel has one value only, for an eps that is not a number from 0
/// and a momentum outside of 0..1.
Value batchnorm(Value x, Value sample_weights, const BatchNorm& layer);

/// The same with the running statistics in the place of the micro-batch's: for evaluation graphs.
Value batchnorm_inference(Value x, const BatchNorm& layer);

/// One layer in the slabs of running_average: elements from `offset` on, see StatisticsSegment.
struct RunningAverageSegment {
  std::size_t offset = 0, channels = 0;
  double momentum = 0;
};
/// average = (1 - momentum) · average + momentum · Σ count · value / Σ count, for mean and variance
/// of each layer. Does nothing when StepState::skip is set, and leaves a layer alone that has no
/// count.
Attributes running_average_attributes(const std::vector<RunningAverageSegment>& segments);

}  // namespace ddp
