// Which contributions go to which range of a slab: the attribute "targets" of commit, checked and
// turned around. Used by the kernel factories of commit.
#pragma once

#include <cstddef>
#include <vector>

#include "core/graph/op_definition.h"

namespace ddp {

/// One output, as elements [begin, end) of all outputs laid end to end, and the contributions to it
/// in their order.
struct CommitTarget {
  std::size_t begin = 0, end = 0;
  std::size_t output = 0;
  std::vector<std::size_t> inputs;
};

/// All outputs in their order. InternalError when a contribution fits no output in size or type (a
/// slab is of the master type of its contributions), and when an output gets none.
std::vector<CommitTarget> commit_targets(const OpSignature& signature);

}  // namespace ddp
