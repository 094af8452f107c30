// A plan as people read it (`ddptrain plan`) and as scripts do (`--json`).
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/plan/plan.h"

namespace ddp {

/// What the description says beside the plan itself.
struct PlanFacts {
  std::string model;
  int ranks = 1;
  std::int64_t micro_batch = 0, accum = 1;
  std::string schedule_hash, kernel_hash;
  std::string recomputation;  ///< recomputation_line; empty without
};

/// What recomputation saves and costs: "activations 512.0 MiB instead of 2048.0 MiB, 12.3 GFLOP a
/// micro-step more (31.2 %)".
std::string recomputation_line(const Plan& with, const Plan& without);

/// Table of steps (kind, output shape, FLOPs, bytes, place), parameters, memory with and without
/// reuse, buckets, hashes.
std::string describe_plan(const Plan& plan, const Graph& graph, const SlabLayout& layout,
                          const PlanFacts& facts);
/// Keys: parameters (total), schedule_hash, kernel_hash, flops, bytes, memory, buckets, steps, and
/// what facts hold.
nlohmann::ordered_json plan_json(const Plan& plan, const Graph& graph, const SlabLayout& layout,
                                 const PlanFacts& facts);

}  // namespace ddp
