// From stored pixels to network input: normalisation, and for training random shifts and mirroring.
// The random choices are a function of (seed, step, sample id), so they are the same for any number
// of ranks. Models call one of the two as their first op; neither has a gradient.
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace ddp {

struct NormalizeOptions {
  std::vector<double> mean, stddev;  ///< per channel, of pixels scaled to [0, 1]
};

struct AugmentOptions {
  NormalizeOptions normalize;
  int crop_pad =
      0;  ///< shift by up to so many pixels each way; what comes in from outside is black (pixel 0)
  bool flip = false;  ///< mirror left and right with probability 1/2, after the shift
  std::uint64_t seed = 0;
};

/// (pixel / 255 - mean) / stddev: [N, H, W, C] U8 -> the same shape in the compute type of the
/// graph. Throws ConfigError when there is not one mean and one positive stddev for each channel.
Value normalize(Value images, const NormalizeOptions& options);

/// The same after a random shift and mirroring. sample_ids: [N] I64.
Value augment(Value images, Value sample_ids, const AugmentOptions& options);

}  // namespace ddp
