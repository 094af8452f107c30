// Which ops read each value of a graph: what passes ask before they change it.
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace ddp {

/// By value, the ops that read it, in their order; an op that reads it twice is listed twice.
inline std::vector<std::vector<OpId>> users_of(const Graph& graph) {
  std::vector<std::vector<OpId>> users(graph.values().size());
  for (std::size_t i = 0; i < graph.ops().size(); ++i)
    for (ValueId input : graph.ops()[i].inputs) users[input.index()].push_back(OpId(i));
  return users;
}

}  // namespace ddp
