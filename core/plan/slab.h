// Flat slabs: parameters, gradients and optimizer states lie one after the other in the order in
// which gradients become final, cut into buckets. A bucket is one all-reduce call, and the
// optimizer is one kernel over the whole slab.
#pragma once

#include "core/plan/plan.h"

namespace ddp {

/// Position of the op that writes the last of a parameter's contributions: behind it the gradient
/// is complete.
std::size_t last_contribution(const Graph& graph, const Parameter& parameter);

/// Parameters of a differentiated graph by the op that writes their last contribution.
ReadyList ready_list(const Graph& graph);

/// Lays the ready parameters out in the given buckets. Each parameter starts at a multiple of 256
/// bytes, each bucket's size is a multiple of world_size x 256 bytes. `ranges` must cover `ready`
/// once, in order.
SlabLayout slab_layout(const Graph& graph, const ReadyList& ready,
                       const std::vector<BucketRange>& ranges, int world_size);

}  // namespace ddp
