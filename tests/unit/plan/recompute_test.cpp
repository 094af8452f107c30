#include "core/plan/recompute.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "core/graph/differentiate.h"
#include "core/ops/dropout/dropout.h"
#include "core/ops/fill/fill.h"
#include "core/ops/linear/linear.h"
#include "core/ops/relu/relu.h"
#include "core/plan/fuse.h"
#include "tests/support/graph_runner.h"
#include "tests/support/training/training.h"

namespace ddp::test {
namespace {

/// Two blocks of linear layers with dropout in them, behind a layer outside of all blocks.
void build(Graph& graph, bool recompute) {
  const Value ids = graph.input("sample_ids", {Shape{4}, DType::kI64});
  Value x = linear(graph.input("x", {Shape{4, 6}, DType::kF64}), {.name = "in", .units = 8});
  for (const char* name : {"a", "b"}) {
    const Scope scope(graph, name);
    const Block block(graph);
    x = relu(linear(x, {.name = "fc1", .units = 8}));
    x = dropout(x, ids, {.probability = 0.5, .instance = name[0], .seed = 3});
    x = relu(linear(x, {.name = "fc2", .units = 8}));
  }
  x = linear(x, {.name = "out", .units = 3});
  differentiate(graph, x, fill(graph, "seed", x.type(), 0.5));
  fuse_epilogues(graph);
  if (recompute) recompute_blocks(graph);
}

GraphRunner run(const Graph& graph) {
  GraphRunner runner(graph, {.in_place = true});
  runner.state.step = 7;
  runner.fill_parameters(-1, 1);
  runner.fill_uniform(runner.id("x"), -1, 1);
  runner.set(runner.id("sample_ids"), std::vector<double>{4, 5, 6, 7});
  runner.run();
  return runner;
}

TEST(Recompute, GivesTheSameGradientsRandomNumbersIncluded) {
  Graph kept(DType::kF64), again(DType::kF64);
  build(kept, false);
  build(again, true);
  EXPECT_GT(again.ops().size(), kept.ops().size());
  const GraphRunner expected = run(kept), actual = run(again);
  for (std::size_t i = 0; i < kept.parameters().size(); ++i)
    EXPECT_EQ(actual.gradient(again.parameters()[i]), expected.gradient(kept.parameters()[i]))
        << kept.parameters()[i].name;
}

TEST(Recompute, BackwardReadsNothingFromInsideABlockThatForwardComputed) {
  Graph graph(DType::kF64);
  build(graph, true);
  for (const Op& op : graph.ops()) {
    if (op.phase != Phase::kBackward) continue;
    for (const ValueId input : op.inputs) {
      const OpId producer = graph.value(input).producer;
      if (!producer.valid() || graph.op(producer).phase == Phase::kBackward) continue;
      const Op& source = graph.op(producer);
      const bool is_output_of_its_block = std::ranges::any_of(graph.ops(), [&](const Op& reader) {
        return reader.phase == Phase::kForward && reader.block != source.block &&
               std::ranges::find(reader.inputs, input) != reader.inputs.end();
      });
      EXPECT_TRUE(source.block == kNoBlock || is_output_of_its_block)
          << op.name << " reads " << graph.value(input).name;
    }
  }
}

TEST(Recompute, SavesMemoryForFlops) {
  const DatasetInfo images{
      .image = Shape{32, 32, 3}, .classes = 10, .mean = {0, 0, 0}, .stddev = {1, 1, 1}};
  TrainingRun run{.model = "resnet50", .global_batch = 16, .compute = DType::kF32};
  const Program kept(program_options(run, images));
  run.recompute = true;
  const Program again(program_options(run, images));
  EXPECT_LT(again.micro_step(0).memory.arena, kept.micro_step(0).memory.arena / 2);
  // A forward pass is a third of a step; the last convolution of a block needs no second run.
  const double added = again.micro_step(0).cost.flops / kept.micro_step(0).cost.flops - 1;
  EXPECT_GT(added, 0.1);
  EXPECT_LT(added, 0.34);
}

}  // namespace
}  // namespace ddp::test
