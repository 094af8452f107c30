// Recomputation pass (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016): what a
// block computed in the forward pass is dropped, and computed again when backward gets there. Runs
// after fusion. The same kernels run on the same inputs, and random numbers are functions of
// counters, so a step gives the same bytes as without.
#pragma once

#include "core/graph/graph.h"

namespace ddp {

/// Repeats in the backward pass the forward ops of each block whose results backward reads. A
/// block's input is kept, and so are values that ops outside of it read (its output) and vectors
/// that are small beside what their op works on (means of batch norm). Returns how many ops run
/// twice.
int recompute_blocks(Graph& graph);

}  // namespace ddp
