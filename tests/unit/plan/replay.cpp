#include "tests/unit/plan/replay.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

namespace ddp::test {
namespace {

constexpr int kPoison = 0xFF;

bool overlap(const Placement& a, const Placement& b) {
  return a.region == b.region && a.offset < b.offset + b.type.bytes() &&
         b.offset < a.offset + a.type.bytes();
}

void poison(const RunMemory& memory, const Placement& place) {
  const TensorView view = memory.view(place);
  if (view.bytes() > 0) std::memset(view.data, kPoison, view.bytes());
}

bool same_bytes(const TensorView& a, const TensorView& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.data, b.data, a.bytes()) == 0;
}

/// Runs one step over a poisoned workspace, and poisoned outputs where they lie over no input.
void run(const ComputeStep& step, const RunMemory& memory, StepState& state) {
  std::vector<TensorView> inputs, outputs;
  for (const Placement& input : step.inputs) inputs.push_back(memory.view(input));
  for (const Placement& output : step.outputs) {
    outputs.push_back(memory.view(output));
    if (output.region == Region::kArena &&
        std::ranges::none_of(step.inputs,
                             [&](const Placement& input) { return overlap(input, output); }))
      poison(memory, output);
  }
  poison(memory, step.workspace);
  step.kernel.run({.inputs = inputs,
                   .outputs = outputs,
                   .workspace = {static_cast<std::byte*>(memory.view(step.workspace).data),
                                 step.kernel.workspace_bytes},
                   .state = &state,
                   .stream = nullptr});
}

}  // namespace

GraphRunner prepared_runner(const Graph& graph) {
  GraphRunner runner(graph);
  fill_as_a_data_set(graph, runner);
  runner.fill_parameters(-0.3, 0.3);
  return runner;
}

void load(const GraphRunner& runner, const Graph& graph, const SlabLayout& layout, const Plan& plan,
          const RunMemory& memory) {
  std::memset(memory.base(Region::kArena), kPoison, memory.bytes(Region::kArena));
  for (const SlabSegment& segment : layout.segments) {
    const TensorView from = runner.view(graph.parameters()[segment.parameter.index()].value);
    std::memcpy(memory.base(Region::kParameters) + segment.offset * size_of(layout.dtype),
                from.data, from.bytes());
  }
  for (std::size_t i = 0; i < graph.statistics().size(); ++i) {
    const StatisticsSegment& segment = layout.statistics[i];
    std::byte* to = memory.base(Region::kBuffers) + segment.offset * size_of(layout.dtype);
    for (const ValueId buffer : {graph.statistics()[i].mean, graph.statistics()[i].variance}) {
      const TensorView from = runner.view(buffer);
      std::memcpy(to, from.data, from.bytes());
      to += from.bytes();
    }
  }
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    const TensorView from = runner.view(runner.id(plan.input_names[i]));
    std::memcpy(memory.view(plan.inputs[i]).data, from.data, from.bytes());
  }
}

void expect_gradients(const GraphRunner& runner, const Graph& graph, const SlabLayout& layout,
                      const RunMemory& memory) {
  for (const SlabSegment& segment : layout.segments) {
    const Parameter& parameter = graph.parameters()[segment.parameter.index()];
    const std::vector<double> expected = runner.gradient(parameter);
    const std::byte* slab = memory.base(Region::kGradients);
    for (std::size_t i = 0; i < segment.elements; ++i) {
      const double actual =
          layout.dtype == DType::kF64
              ? reinterpret_cast<const double*>(slab)[segment.offset + i]
              : static_cast<double>(reinterpret_cast<const float*>(slab)[segment.offset + i]);
      ASSERT_EQ(actual, expected[i]) << segment.name << ", element " << i;
    }
  }
}

/// The statistics slab against what the layers contributed.
void expect_statistics(const GraphRunner& runner, const Graph& graph, const SlabLayout& layout,
                       const RunMemory& memory) {
  for (std::size_t i = 0; i < graph.statistics().size(); ++i) {
    const TensorView expected = runner.view(graph.statistics()[i].contribution);
    const std::byte* actual =
        memory.base(Region::kStatistics) + layout.statistics[i].offset * size_of(layout.dtype);
    ASSERT_EQ(std::memcmp(actual, expected.data, expected.bytes()), 0) << layout.statistics[i].name;
  }
}

void expect_plan_computes(const Graph& graph, const SlabLayout& layout, const Plan& plan) {
  GraphRunner runner = prepared_runner(graph);
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  const RunMemory memory(*backend, {&plan});
  load(runner, graph, layout, plan, memory);
  const bool begins = std::ranges::any_of(plan.steps, [](const Step& step) {
    const auto* compute = std::get_if<ComputeStep>(&step);
    return compute != nullptr && compute->kind == "begin_step";
  });
  StepState state;
  state.step = begins ? runner.state.step - 1 : runner.state.step;
  runner.run();

  std::size_t next = 0;  // op of the graph
  const auto skip_views = [&] {
    while (next < graph.ops().size() && graph.ops()[next].definition->is_view) ++next;
  };
  for (const Step& step : plan.steps) {
    const auto* compute = std::get_if<ComputeStep>(&step);
    if (compute == nullptr || compute->phase == Phase::kOptimizer) continue;
    skip_views();
    const bool of_graph = next < graph.ops().size() && compute->name == graph.ops()[next].name &&
                          compute->kind == graph.ops()[next].definition->name;
    if (!of_graph) {
      run(*compute, memory, state);
      continue;
    }
    const Op& op = graph.ops()[next++];
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
      ASSERT_TRUE(same_bytes(memory.view(compute->inputs[i]), runner.view(op.inputs[i])))
          << op.name << " (" << compute->kind << ") reads another '"
          << graph.value(op.inputs[i]).name << "'";
    run(*compute, memory, state);
    for (std::size_t o = 0; o < op.outputs.size(); ++o)
      ASSERT_TRUE(same_bytes(memory.view(compute->outputs[o]), runner.view(op.outputs[o])))
          << op.name << " (" << compute->kind << ") writes another '"
          << graph.value(op.outputs[o]).name << "'";
  }
  skip_views();
  EXPECT_EQ(next, graph.ops().size()) << "not every op was run";
  EXPECT_EQ(state.loss_sum, runner.state.loss_sum);
  if (plan.memory.gradients > 0) {
    expect_gradients(runner, graph, layout, memory);
    expect_statistics(runner, graph, layout, memory);
  }
}

}  // namespace ddp::test
