// Replays a plan beside a GraphRunner, in which every value has memory of its own: a tensor that
// the arena overwrites too early, or that is read before it was written, shows at the step that
// reads it.
#pragma once

#include "core/plan/executor.h"
#include "core/plan/plan.h"
#include "tests/support/graph_runner.h"

namespace ddp::test {

/// A runner of `graph` with random parameters, and with inputs as Program names them: labels below
/// ten, weights of 1 but for the last sample's 0. Not yet run.
GraphRunner prepared_runner(const Graph& graph);

/// Copies the runner's parameters and inputs to where the plan reads them, and fills the arena with
/// 0xFF bytes (NaN).
void load(const GraphRunner& runner, const Graph& graph, const SlabLayout& layout, const Plan& plan,
          const RunMemory& memory);

/// Expects that every op of the graph is run once and reads and writes the same bytes in the plan
/// as in a runner, and that the gradient slab ends with the sum of all contributions.
void expect_plan_computes(const Graph& graph, const SlabLayout& layout, const Plan& plan);

/// The gradient of every parameter in `memory` is that of the runner.
void expect_gradients(const GraphRunner& runner, const Graph& graph, const SlabLayout& layout,
                      const RunMemory& memory);

}  // namespace ddp::test
