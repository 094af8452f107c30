// From graph to plan: orders the steps, inserts commits, collectives, waits and the optimizer, and
// gives every tensor its place. All plans of a run are built here before the first step.
#pragma once

#include "core/plan/optimizer_spec.h"
#include "core/plan/plan.h"

namespace ddp {

/// What a plan is made from. Graph and layout are read while the plan is made and may go when it is
/// there; a GPU (kernels.gpu) has to outlive the plan, whose kernels use it. A plan for a GPU that
/// is made without one (null) can be printed and measured, not run.
struct PlanContext {
  const Graph* graph = nullptr;
  const SlabLayout* layout = nullptr;
  BackendKind backend = BackendKind::kCpu;
  KernelContext kernels;
};

/// Which micro-step of an optimizer step: the first stores gradients and starts the step, later
/// ones accumulate, and the last reduces, updates and ends it. With one micro-batch a step, it is
/// both.
struct MicroStep {
  bool first = true;
  bool last = true;
};

struct TrainPlanOptions {
  MicroStep micro_step;
  int world_size = 1;   ///< with one rank there is nothing to communicate
  bool overlap = true;  ///< false: buckets are posted after the whole backward pass
  OptimizerSpec optimizer;
};

Plan make_train_plan(const PlanContext& context, const TrainPlanOptions& options);
/// Forward only; parameters are read where the training plan updates them. `outputs` are values
/// that the host reads after a run: Plan::outputs, in the same order.
Plan make_evaluation_plan(const PlanContext& context, const std::vector<ValueId>& outputs = {});

/// Bytes of the moving averages: parameters, and behind them running statistics. 0 without EMA.
std::size_t average_bytes(const SlabLayout& layout, const OptimizerSpec& optimizer);

/// Bytes of the optimizer's state slabs.
std::size_t optimizer_bytes(const SlabLayout& layout, const OptimizerSpec& optimizer);

}  // namespace ddp
