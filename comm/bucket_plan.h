// Decides which gradients travel together. Pure: the same arguments give the same ranges on every
// rank.
#pragma once

#include <cstddef>
#include <vector>

#include "core/plan/bucket.h"

namespace ddp::comm {

/// Cost of one all-reduce of n bytes: alpha + n * beta seconds. Measured at start on rank 0 and
/// broadcast.
struct LinkModel {
  double alpha = 20e-6;     ///< seconds a call
  double beta = 1.0 / 5e9;  ///< seconds a byte
};

struct BucketLimits {
  std::size_t element_bytes = 4;
  std::size_t bytes = 0;  ///< close a bucket at this size; 0: chosen from the link model
};

/// Consecutive ranges that cover the ready list once, in its order. A bucket closes before it would
/// exceed the limit, so that only a parameter above the limit does, in a bucket of its own. The
/// last bucket is small, since nothing is left to hide it behind: at most a quarter of the limit,
/// or one parameter. An empty list gives no bucket.
std::vector<BucketRange> bucket_plan(const ReadyList& ready, const LinkModel& link,
                                     const BucketLimits& limits);

}  // namespace ddp::comm
