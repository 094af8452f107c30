// The words shared by the communication pass (core/plan) and the bucket planner (comm/bucket_plan):
// which gradients become final when, and which ranges of the slab are reduced together.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/types.h"

namespace ddp {

/// A parameter in the order in which gradients become final.
struct ReadyParameter {
  ParamId parameter;
  std::string name;
  std::size_t elements = 0;
  std::size_t ready_op = 0;  ///< position of the op that writes the last contribution
};
using ReadyList = std::vector<ReadyParameter>;

/// Parameters [begin, end) of the ready list, reduced with one call.
struct BucketRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool operator==(const BucketRange&) const = default;
};

}  // namespace ddp
