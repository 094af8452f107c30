// A constant tensor made inside the step; seeds the backward pass. The plan calls it.
#pragma once

#include <string_view>

#include "core/graph/graph.h"

namespace ddp {

/// A tensor of `type` (F32 or F64) whose elements are all `value`.
Value fill(Graph& graph, std::string_view name, const TensorType& type, double value);

}  // namespace ddp
