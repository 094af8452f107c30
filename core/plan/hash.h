// The two hashes of a plan. schedule_hash covers all that must be equal on every rank: the
// collectives, the parameters, the ops, the update and the settings; kernel_hash covers what this
// rank chose to compute it with, and is information only.
#pragma once

#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace ddp {

/// Canonical text of everything that must agree, one fact a line; what is compared when the hashes
/// differ. `settings` are lines of the caller (batch, seed, optimizer).
std::string schedule_text(const Graph& graph, const SlabLayout& layout,
                          const std::vector<const Plan*>& plans, const std::string& settings);
/// XXH3 of the schedule text, 16 hex digits.
std::string schedule_hash(const std::string& schedule_text);
/// XXH3 of each step's algorithm and of the backend's libraries, 16 hex digits.
std::string kernel_hash(const std::vector<const Plan*>& plans, const std::string& libraries);

}  // namespace ddp
