// Layout pass: gives every intermediate value of a step list its place in the arena, sharing memory
// between views, between an input that dies and the output that may overwrite it, and between
// values that are never alive together.
#pragma once

#include <map>
#include <vector>

#include "core/plan/memory_plan.h"
#include "core/plan/plan.h"

namespace ddp {

/// A tensor of a step before the arena is laid out: a value of the graph, or a fixed place.
struct Operand {
  ValueId value;  ///< invalid: `fixed` holds
  Placement fixed;
};

/// A step of the plan before the arena is laid out.
struct DraftStep {
  ComputeStep step;                          ///< inputs, outputs and workspace still empty
  const OpDefinition* definition = nullptr;  ///< of step.kind; set in every draft
  std::vector<Operand> inputs, outputs;
};

struct MemoryResult {
  std::map<ValueId, Placement> placements;  ///< of the values in the arena
  std::vector<std::size_t> workspaces;      ///< offset by draft step
  PlanMemory memory;                        ///< the arena fields
};

/// `fixed` are values that lie outside of the arena (inputs, parameters, buffers); `kept` are read
/// after the last step.
MemoryResult layout_memory(const Graph& graph, const std::vector<DraftStep>& steps,
                           const std::map<ValueId, Placement>& fixed,
                           const std::vector<ValueId>& kept);

}  // namespace ddp
