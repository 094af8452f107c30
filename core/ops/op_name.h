// The name of an op: the one that the model gave it, or a made-up one. Builders of ops without
// parameters call it, since their names matter to no file.
#pragma once

#include <string>
#include <string_view>

#include "core/graph/graph.h"

namespace ddp {

/// `name`, or "<prefix><n>" when it is empty.
inline std::string op_name(Graph& graph, const std::string& name, std::string_view prefix) {
  return name.empty() ? graph.unique_name(prefix) : name;
}

}  // namespace ddp
