#include "core/plan/build_plan.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/base/round_up.h"
#include "core/ops/batchnorm/batchnorm.h"
#include "core/ops/cast/cast.h"
#include "core/plan/plan_memory.h"
#include "core/plan/slab.h"

namespace ddp {
namespace {

constexpr std::size_t kInputAlignment = 256;

/// Collects the steps of one plan. Compute steps are drafted first, since the arena needs all
/// lifetimes; the other steps keep their place between them.
class PlanBuilder {
 public:
  explicit PlanBuilder(const PlanContext& context) : context_(context), graph_(*context.graph) {
    for (const SlabSegment& segment : context.layout->segments) {
      const Parameter& parameter = graph_.parameters()[segment.parameter.index()];
      fixed_[parameter.value] = parameter_place(segment, graph_.value(parameter.value).type);
    }
    for (const RunningStatistics& running : graph_.statistics()) {
      const StatisticsSegment& segment = statistics_segment(running.name);
      const Shape channels = graph_.value(running.mean).type.shape;
      fixed_[running.mean] = slab_range(Region::kBuffers, segment.offset, channels);
      fixed_[running.variance] =
          slab_range(Region::kBuffers, segment.offset + segment.channels, channels);
    }
    for (std::size_t i = 0; i < graph_.values().size(); ++i) {
      const ValueInfo& value = graph_.values()[i];
      if (value.role != ValueRole::kInput) continue;
      const Placement place{.region = Region::kInput, .offset = input_bytes_, .type = value.type};
      fixed_[ValueId(i)] = place;
      plan_.inputs.push_back(place);
      plan_.input_names.push_back(value.name);
      input_bytes_ += round_up(value.type.bytes(), kInputAlignment);
    }
  }

  Placement slab_range(Region region, std::size_t offset, const Shape& shape,
                       std::size_t slab = 0) const {
    const std::size_t element = size_of(context_.layout->dtype);
    return {.region = region,
            .offset = (slab * context_.layout->elements + offset) * element,
            .type = {shape, context_.layout->dtype}};
  }
  Placement whole_slab(Region region, std::size_t slab = 0) const {
    return slab_range(region, 0, Shape{static_cast<std::int64_t>(context_.layout->elements)}, slab);
  }

  /// Parameters of the compute type are read in their copy, the others in the master slab.
  Placement parameter_place(const SlabSegment& segment, const TensorType& type) const {
    const bool copy = type.dtype != context_.layout->dtype;
    return {.region = copy ? Region::kComputeParameters : Region::kParameters,
            .offset = segment.offset * size_of(type.dtype),
            .type = type};
  }

  /// All of kBuffers or kStatistics.
  Placement whole_statistics(Region region) const {
    return slab_range(region, 0,
                      Shape{static_cast<std::int64_t>(context_.layout->statistics_elements)});
  }
  const StatisticsSegment& statistics_segment(const std::string& name) const {
    const auto& segments = context_.layout->statistics;
    const auto found = std::ranges::find(segments, name, &StatisticsSegment::name);
    DDP_CHECK(found != segments.end(), "layer '{}' has no place for its running statistics", name);
    return *found;
  }

  void add_graph_op(const Op& op) {
    DraftStep draft{.step = {.name = op.name,
                             .kind = std::string(op.definition->name),
                             .phase = op.phase,
                             .signature = graph_.signature(op)},
                    .definition = op.definition};
    for (ValueId id : op.inputs) draft.inputs.push_back(operand(id));
    for (ValueId id : op.outputs) draft.outputs.push_back(operand(id));
    add(std::move(draft));
  }

  void add_slab_op(std::string_view kind, std::string name, Phase phase,
                   std::vector<Operand> inputs, std::vector<Operand> outputs,
                   Attributes attributes) {
    DraftStep draft{.step = {.name = std::move(name),
                             .kind = std::string(kind),
                             .phase = phase,
                             .signature = {}},
                    .definition = &op_definition(kind),
                    .inputs = std::move(inputs),
                    .outputs = std::move(outputs)};
    for (const Operand& input : draft.inputs) draft.step.signature.inputs.push_back(type_of(input));
    for (const Operand& output : draft.outputs)
      draft.step.signature.outputs.push_back(type_of(output));
    draft.step.signature.attributes = std::move(attributes);
    add(std::move(draft));
  }

  /// Rounds the parameters to the compute type; nothing when they are of it.
  void cast_parameters() {
    const SlabLayout& layout = *context_.layout;
    if (!layout.has_compute_copy()) return;
    Placement copy = whole_slab(Region::kParameters);
    copy.region = Region::kComputeParameters;
    copy.type.dtype = layout.compute;
    add_slab_op("cast", "cast_parameters", Phase::kForward,
                {{.value = {}, .fixed = whole_slab(Region::kParameters)}},
                {{.value = {}, .fixed = copy}}, cast_attributes(layout.compute));
  }

  void add(Step step) { order_.push_back({.other = std::move(step)}); }
  void mark(Phase phase) { add(MarkStep{phase}); }
  std::size_t new_event() { return plan_.events++; }

  Operand operand(ValueId id) const { return {.value = id, .fixed = {}}; }

  /// `outputs` are what the host reads after a run.
  Plan finish(std::string name, const std::vector<ValueId>& outputs = {}) {
    plan_.name = std::move(name);
    const MemoryResult memory = layout_memory(graph_, drafts_, fixed_, outputs);
    for (const ValueId output : outputs) plan_.outputs.push_back(place(operand(output), memory));
    for (std::size_t s = 0; s < drafts_.size(); ++s) {
      ComputeStep& step = drafts_[s].step;
      for (const Operand& input : drafts_[s].inputs) step.inputs.push_back(place(input, memory));
      for (const Operand& output : drafts_[s].outputs)
        step.outputs.push_back(place(output, memory));
      step.workspace = {
          .region = Region::kArena,
          .offset = memory.workspaces[s],
          .type = {Shape{static_cast<std::int64_t>(step.kernel.workspace_bytes)}, DType::kU8}};
      plan_.cost.flops += step.cost.flops;
      plan_.cost.bytes += step.cost.bytes;
    }
    for (Item& item : order_) {
      if (!item.draft)
        plan_.steps.push_back(std::move(item.other));
      else if (!is_view(drafts_[*item.draft]))
        plan_.steps.emplace_back(std::move(drafts_[*item.draft].step));
    }
    plan_.memory = memory.memory;
    plan_.memory.input = input_bytes_;
    plan_.memory.parameters = context_.layout->bytes();
    plan_.memory.compute_parameters = context_.layout->compute_copy_bytes();
    plan_.memory.buffers = context_.layout->statistics_bytes();
    return std::move(plan_);
  }

 private:
  struct Item {
    std::optional<std::size_t> draft = {};  ///< index of a compute step
    Step other = {};
  };

  /// Without a GPU at hand a plan for one has everything but kernels and their workspace.
  bool has_kernels() const {
    return context_.backend == BackendKind::kCpu || context_.kernels.gpu != nullptr;
  }

  static bool is_view(const DraftStep& draft) { return draft.definition->is_view; }

  void add(DraftStep draft) {
    ComputeStep& step = draft.step;
    if (!is_view(draft)) {
      if (has_kernels())
        step.kernel = kernel_factory(context_.backend, step.kind)(step.signature, context_.kernels);
      else
        step.kernel.algorithm = "chosen on the GPU";
      step.cost = draft.definition->cost(step.signature);
    }
    order_.push_back({.draft = drafts_.size()});
    drafts_.push_back(std::move(draft));
  }

  const TensorType& type_of(const Operand& operand) const {
    return operand.value.valid() ? graph_.value(operand.value).type : operand.fixed.type;
  }

  Placement place(const Operand& operand, const MemoryResult& memory) const {
    if (!operand.value.valid()) return operand.fixed;
    if (const auto found = fixed_.find(operand.value); found != fixed_.end()) return found->second;
    return memory.placements.at(operand.value);
  }

  const PlanContext& context_;
  const Graph& graph_;
  Plan plan_;
  std::map<ValueId, Placement> fixed_;
  std::size_t input_bytes_ = 0;
  std::vector<DraftStep> drafts_;
  std::vector<Item> order_;
};

/// The position of the op after which each bucket's last contribution is there, by bucket.
std::vector<std::size_t> bucket_ready_ops(const Graph& graph, const SlabLayout& layout) {
  std::vector<std::size_t> ready;
  for (const Bucket& bucket : layout.buckets) {
    std::size_t last = 0;
    for (std::size_t s = bucket.first_segment; s < bucket.last_segment; ++s)
      last = std::max(last, last_contribution(
                                graph, graph.parameters()[layout.segments[s].parameter.index()]));
    ready.push_back(last);
  }
  return ready;
}

class TrainPlan {
 public:
  TrainPlan(const PlanContext& context, const TrainPlanOptions& options)
      : context_(context), options_(options), builder_(context) {}

  Plan build() {
    const Graph& graph = *context_.graph;
    const std::vector<std::size_t> ready = bucket_ready_ops(graph, *context_.layout);
    builder_.mark(Phase::kForward);
    if (options_.micro_step.first) {
      builder_.add_slab_op("begin_step", "begin_step", Phase::kForward, {}, {}, {});
      builder_.cast_parameters();
    }
    bool backward = false;
    std::size_t bucket = 0;
    for (std::size_t i = 0; i < graph.ops().size(); ++i) {
      if (!backward && graph.ops()[i].phase == Phase::kBackward) {
        backward = true;
        commit_statistics();
        builder_.mark(Phase::kBackward);
      }
      builder_.add_graph_op(graph.ops()[i]);
      for (; bucket < ready.size() && ready[bucket] == i; ++bucket) {
        commit(bucket);
        if (options_.overlap) reduce(bucket);
      }
    }
    DDP_CHECK(bucket == ready.size(), "{} of {} buckets are complete behind the last op", bucket,
              ready.size());
    if (options_.micro_step.last) end_step();
    Plan plan = builder_.finish(fmt::format("train{}{}", options_.micro_step.first ? ", first" : "",
                                            options_.micro_step.last ? ", last" : ""));
    plan.memory.gradients = context_.layout->bytes();
    plan.memory.statistics = context_.layout->statistics_bytes();
    plan.memory.optimizer = optimizer_bytes(*context_.layout, options_.optimizer);
    plan.memory.average = average_bytes(*context_.layout, options_.optimizer);
    return plan;
  }

 private:
  bool has_statistics() const { return !context_.layout->statistics.empty(); }
  bool communicates() const { return options_.micro_step.last && options_.world_size > 1; }

  /// Contributions on their way into slabs.
  struct Commit {
    std::vector<Operand> contributions, ranges;
    std::vector<std::size_t> targets;  ///< by contribution, the range it goes to
  };

  /// `contributions` have the shape of the range: a parameter's gradients, a layer's statistics.
  void add_to(Commit& commit, const std::vector<ValueId>& contributions, Region region,
              std::size_t offset) const {
    for (const ValueId id : contributions) {
      commit.contributions.push_back(builder_.operand(id));
      commit.targets.push_back(commit.ranges.size());
    }
    const Shape& shape = context_.graph->value(contributions.front()).type.shape;
    commit.ranges.push_back({.value = {}, .fixed = builder_.slab_range(region, offset, shape)});
  }

  void add_commit(std::string name, Phase phase, Commit commit) {
    builder_.add_slab_op(
        "commit", std::move(name), phase, std::move(commit.contributions), std::move(commit.ranges),
        commit_attributes(commit.targets, /*accumulate=*/!options_.micro_step.first));
  }

  void commit(std::size_t index) {
    const SlabLayout& layout = *context_.layout;
    const Bucket& bucket = layout.buckets[index];
    Commit commit;
    for (std::size_t s = bucket.first_segment; s < bucket.last_segment; ++s) {
      const SlabSegment& segment = layout.segments[s];
      add_to(commit, context_.graph->parameters()[segment.parameter.index()].contributions,
             Region::kGradients, segment.offset);
    }
    add_commit(fmt::format("bucket{}.commit", index), Phase::kBackward, std::move(commit));
  }

  /// What batch norm contributes to its running averages.
  void commit_statistics() {
    if (!has_statistics()) return;
    Commit commit;
    for (const RunningStatistics& running : context_.graph->statistics())
      add_to(commit, {running.contribution}, Region::kStatistics,
             builder_.statistics_segment(running.name).offset);
    add_commit("statistics.commit", Phase::kForward, std::move(commit));
  }

  /// With the first bucket goes what the forward pass has left: the statistics of batch norm.
  void reduce(std::size_t index) {
    if (!communicates()) return;
    if (index == 0 && has_statistics())
      post("statistics", builder_.whole_statistics(Region::kStatistics));
    const Bucket& bucket = context_.layout->buckets[index];
    post(fmt::format("bucket {}", index),
         builder_.slab_range(Region::kGradients, bucket.begin,
                             Shape{static_cast<std::int64_t>(bucket.end - bucket.begin)}));
  }

  void post(std::string label, const Placement& range) {
    const std::size_t signal = builder_.new_event();
    builder_.add(CommStep{.collective = {.kind = CollectiveKind::kAllReduceSum,
                                         .root = 0,
                                         .sequence = static_cast<int>(signal),
                                         .label = std::move(label)},
                          .range = range,
                          .signal = signal});
    signals_.push_back(signal);
  }

  void end_step() {
    if (communicates()) {
      if (!options_.overlap)
        for (std::size_t b = 0; b < context_.layout->buckets.size(); ++b) reduce(b);
      post("step state",
           {.region = Region::kState,
            .offset = 0,
            .type = {Shape{static_cast<std::int64_t>(StepState::kSummed)}, DType::kF64}});
      for (std::size_t signal : signals_) builder_.add(WaitStep{signal});
    }
    builder_.mark(Phase::kOptimizer);
    const OptimizerSpec& optimizer = options_.optimizer;
    const Operand gradients{.value = {}, .fixed = builder_.whole_slab(Region::kGradients)};
    builder_.add_slab_op("finish_step", "finish_step", Phase::kOptimizer, {gradients}, {},
                         finish_step_attributes(optimizer.finish));
    if (has_statistics()) update_running_averages();
    std::vector<Operand> state{{.value = {}, .fixed = builder_.whole_slab(Region::kParameters)}};
    for (std::size_t slab = 0; slab < optimizer.state_slabs(); ++slab)
      state.push_back({.value = {}, .fixed = builder_.whole_slab(Region::kOptimizer, slab)});
    builder_.add_slab_op(optimizer.kind, "optimizer", Phase::kOptimizer, {gradients},
                         std::move(state), update_attributes());
    if (optimizer.ema > 0) average_weights();
  }

  /// Behind the update: the averages of the parameters, then those of the running statistics.
  void average_weights() {
    const auto average = [&](std::string name, const Placement& values, std::size_t offset) {
      builder_.add_slab_op(
          "ema", std::move(name), Phase::kOptimizer, {{.value = {}, .fixed = values}},
          {{.value = {},
            .fixed = builder_.slab_range(Region::kAverage, offset, values.type.shape)}},
          ema_attributes(options_.optimizer.ema));
    };
    average("ema", builder_.whole_slab(Region::kParameters), 0);
    if (has_statistics())
      average("ema.statistics", builder_.whole_statistics(Region::kBuffers),
              context_.layout->elements);
  }

  void update_running_averages() {
    std::vector<RunningAverageSegment> segments;
    for (const StatisticsSegment& segment : context_.layout->statistics)
      segments.push_back(
          {.offset = segment.offset, .channels = segment.channels, .momentum = segment.momentum});
    builder_.add_slab_op("running_average", "running_average", Phase::kOptimizer,
                         {{.value = {}, .fixed = builder_.whole_statistics(Region::kStatistics)}},
                         {{.value = {}, .fixed = builder_.whole_statistics(Region::kBuffers)}},
                         running_average_attributes(segments));
  }

  Attributes update_attributes() const {
    const OptimizerSpec& optimizer = options_.optimizer;
    std::vector<OptimizerSegment> segments;
    for (const SlabSegment& segment : context_.layout->segments)
      segments.push_back(
          {.begin = segment.offset,
           .end = segment.offset + segment.elements,
           .weight_decay = segment.decay || optimizer.decay_all ? optimizer.weight_decay : 0.0,
           .adapt = segment.decay});
    if (optimizer.kind == "lars") return lars_attributes(optimizer.lars, segments);
    if (optimizer.kind == "adamw") return adamw_attributes(optimizer.adamw, segments);
    if (optimizer.kind == "lion") return lion_attributes(optimizer.lion, segments);
    return sgd_attributes(optimizer.sgd, segments);
  }

  const PlanContext& context_;
  const TrainPlanOptions& options_;
  PlanBuilder builder_;
  std::vector<std::size_t> signals_;
};

}  // namespace

std::size_t optimizer_bytes(const SlabLayout& layout, const OptimizerSpec& optimizer) {
  return optimizer.state_slabs() * layout.bytes();
}

std::size_t average_bytes(const SlabLayout& layout, const OptimizerSpec& optimizer) {
  return optimizer.ema > 0 ? layout.bytes() + layout.statistics_bytes() : 0;
}

Plan make_train_plan(const PlanContext& context, const TrainPlanOptions& options) {
  return TrainPlan(context, options).build();
}

Plan make_evaluation_plan(const PlanContext& context, const std::vector<ValueId>& outputs) {
  PlanBuilder builder(context);
  builder.mark(Phase::kForward);
  builder.cast_parameters();
  for (const Op& op : context.graph->ops()) builder.add_graph_op(op);
  return builder.finish("evaluate", outputs);
}

}  // namespace ddp
