// The arena gives every tensor to its last reader unharmed, in all plans of both models.
#include <gtest/gtest.h>

#include "core/graph/differentiate.h"
#include "core/ops/add/add.h"
#include "core/ops/augment/augment.h"
#include "core/ops/dropout/dropout.h"
#include "core/ops/fill/fill.h"
#include "core/ops/linear/linear.h"
#include "core/ops/loss/loss.h"
#include "core/ops/relu/relu.h"
#include "core/ops/reshape/reshape.h"
#include "core/plan/build_plan.h"
#include "core/plan/fuse.h"
#include "core/plan/slab.h"
#include "models/model.h"
#include "tests/support/training/training.h"
#include "tests/unit/plan/replay.h"

namespace ddp::test {
namespace {

const DatasetInfo kImages{.image = Shape{12, 12, 1}, .classes = 10, .mean = {0.3}, .stddev = {0.2}};

class Replay : public testing::TestWithParam<std::tuple<const char*, DType>> {
 protected:
  TrainingRun run_of(std::int64_t accum) const {
    return {.model = std::get<0>(GetParam()),
            .global_batch = 5 * accum,
            .accum = accum,
            .compute = std::get<1>(GetParam())};
  }
};

TEST_P(Replay, EveryMicroStepComputesTheGraph) {
  for (const std::int64_t accum : {1, 3}) {
    const TrainingRun run = run_of(accum);
    const Program program(program_options(run, kImages));
    for (std::int64_t q = 0; q < accum; ++q) {
      SCOPED_TRACE(program.micro_step(q).name);
      expect_plan_computes(program.graph(), program.layout(), program.micro_step(q));
    }
  }
}

TEST_P(Replay, RecomputedBlocksComputeTheGraph) {
  TrainingRun run = run_of(1);
  if (!run.model.starts_with("resnet")) return;  // the others have no blocks
  run.recompute = true;
  const Program program(program_options(run, kImages));
  expect_plan_computes(program.graph(), program.layout(), program.micro_step(0));
}

TEST_P(Replay, TheExecutorLeavesTheSameGradients) {
  const TrainingRun run = run_of(1);
  const Program program(program_options(run, kImages));
  const Plan& plan = program.micro_step(0);
  GraphRunner runner = prepared_runner(program.graph());
  runner.run();
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  const RunMemory memory(*backend, {&plan});
  load(runner, program.graph(), program.layout(), plan, memory);
  Executor(plan, *backend, memory, nullptr).run();
  expect_gradients(runner, program.graph(), program.layout(), memory);
}

TEST_P(Replay, EvaluationComputesTheGraph) {
  Graph graph(std::get<1>(GetParam()));
  const Value images = graph.input("images", {Shape{5, 12, 12, 1}, DType::kU8}),
              labels = graph.input("labels", {Shape{5}, DType::kI32}),
              weights = graph.input("weights", {Shape{5}, DType::kF32});
  const Value logits =
      models::find_model(std::get<0>(GetParam()))
          .build(graph, normalize(images, {.mean = {0.3}, .stddev = {0.2}}), {.training = false});
  score(softmax_cross_entropy(logits, labels, weights), logits, labels, weights, /*exact=*/true);
  fuse_epilogues(graph);
  const ReadyList ready = ready_list(graph);
  const SlabLayout layout = slab_layout(graph, ready, {{0, ready.size()}}, 1);
  expect_plan_computes(graph, layout, make_evaluation_plan({.graph = &graph, .layout = &layout}));
}

INSTANTIATE_TEST_SUITE_P(Models, Replay,
                         testing::Combine(testing::Values("mlp", "convnet", "resnet18", "resnet50"),
                                          testing::Values(DType::kF32, DType::kF64)),
                         [](const auto& instance) {
                           return fmt::format("{}_{}", std::get<0>(instance.param),
                                              name_of(std::get<1>(instance.param)));
                         });

/// Trains `layers` of a 4x6 input in one plan and replays it.
void expect_trained(const std::function<Value(Value x, Value ids)>& layers) {
  Graph graph(DType::kF64);
  const Value x = graph.input("x", {Shape{4, 6}, DType::kF64});
  const Value y = layers(x, graph.input("sample_ids", {Shape{4}, DType::kI64}));
  differentiate(graph, y, fill(graph, "seed", y.type(), 0.25));
  fuse_epilogues(graph);
  const ReadyList ready = ready_list(graph);
  const SlabLayout layout = slab_layout(graph, ready, {{0, ready.size()}}, 1);
  expect_plan_computes(graph, layout,
                       make_train_plan({.graph = &graph, .layout = &layout}, TrainPlanOptions{}));
}

TEST(ReplayOf, TiedWeightsCommitsBothContributions) {
  const Linear tied{.name = "tied", .units = 6};
  expect_trained([&](Value x, Value) { return linear(relu(linear(x, tied)), tied); });
}

TEST(ReplayOf, AValueAddedToItselfKeepsItsMemory) {
  expect_trained([](Value x, Value) {
    const Value y = relu(linear(x, {.name = "fc1", .units = 5}));
    return linear(add(y, y), {.name = "fc2", .units = 3});
  });
}

TEST(ReplayOf, AResidualBranchOutlivesTheOpsBetween) {
  expect_trained([](Value x, Value ids) {
    const Value y = linear(x, {.name = "fc1", .units = 6});
    Value z = relu(y);
    z = dropout(z, ids, {.probability = 0.5, .instance = 1, .seed = 3});
    z = linear(z, {.name = "fc2", .units = 6});
    return relu(add(z, y));
  });
}

TEST(ReplayOf, AViewKeepsTheMemoryOfItsSource) {
  expect_trained([](Value x, Value) {
    const Value y = linear(x, {.name = "fc1", .units = 6});
    const Value view = reshape(y, {8, 3});
    return add(reshape(relu(view), {4, 6}), linear(y, {.name = "fc2", .units = 6}));
  });
}

}  // namespace
}  // namespace ddp::test
