#include "core/graph/differentiate.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/add/add.h"
#include "core/ops/fill/fill.h"
#include "core/ops/linear/linear.h"
#include "core/ops/relu/relu.h"
#include "tests/support/graph_runner.h"

namespace ddp::test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

void differentiate_sum(Value output) {
  differentiate(*output.graph, output, fill(*output.graph, "seed", output.type(), 1.0));
}

std::size_t last_contribution(const Graph& graph, std::string_view name) {
  const auto found = std::ranges::find(graph.parameters(), name, &Parameter::name);
  return graph.value(found->contributions.back()).producer.index();
}

TEST(Differentiate, AddsBackwardOpsBehindTheForwardPass) {
  Graph graph(DType::kF64);
  const Value x = graph.input("x", {Shape{2, 3}, DType::kF64});
  differentiate_sum(relu(linear(x, {.name = "fc", .units = 4})));
  EXPECT_TRUE(std::ranges::is_sorted(graph.ops(), {}, &Op::phase));
  EXPECT_EQ(graph.ops().back().phase, Phase::kBackward);
}

TEST(Differentiate, FinishesTheGradientsOfLaterLayersFirst) {
  Graph graph(DType::kF64);
  Value x = graph.input("x", {Shape{2, 3}, DType::kF64});
  for (const char* name : {"fc1", "fc2", "fc3"}) x = relu(linear(x, {.name = name, .units = 3}));
  differentiate_sum(x);
  EXPECT_LT(last_contribution(graph, "fc3.weight"), last_contribution(graph, "fc2.weight"));
  EXPECT_LT(last_contribution(graph, "fc2.weight"), last_contribution(graph, "fc1.weight"));
}

TEST(Differentiate, GivesNoGradientToWhatNoParameterIsBehind) {
  Graph graph(DType::kF64);
  const Value x = graph.input("x", {Shape{2, 3}, DType::kF64});
  differentiate_sum(linear(relu(x), {.name = "fc", .units = 4}));
  for (const Op& op : graph.ops()) {
    EXPECT_NE(op.definition->name, "linear_backward_data");
    EXPECT_NE(op.definition->name, "relu_backward");
  }
}

TEST(Differentiate, AddsUpTheGradientsOfAllUsers) {
  // d/dw of (w + w) + relu(w) is 3 where w > 0 and 2 elsewhere.
  Graph graph(DType::kF64);
  const Value w = graph.parameter("w", {3}, {});
  const Value inner = add(w, graph.input("zero", {Shape{3}, DType::kF64}));
  differentiate_sum(add(add(inner, inner), relu(inner)));
  GraphRunner runner(graph);
  runner.set(w.id, std::vector<double>{1, -1, 2});
  runner.set(runner.id("zero"), std::vector<double>{0, 0, 0});
  runner.run();
  EXPECT_THAT(runner.gradient(graph.parameters()[0]), testing::ElementsAre(3, 2, 3));
}

TEST(Differentiate, ListsOneContributionForEachUseOfATiedParameter) {
  Graph graph(DType::kF64);
  const Value x = graph.input("x", {Shape{2, 3}, DType::kF64});
  const Linear layer{.name = "tied", .units = 3, .bias = false};
  differentiate_sum(linear(relu(linear(x, layer)), layer));
  ASSERT_EQ(graph.parameters().size(), 1U);
  const std::vector<ValueId>& contributions = graph.parameters()[0].contributions;
  ASSERT_EQ(contributions.size(), 2U);
  EXPECT_LT(graph.value(contributions[0]).producer, graph.value(contributions[1]).producer)
      << "in the order in which they become final";
}

TEST(Differentiate, NamesAParameterThatTheLossDoesNotDependOn) {
  Graph graph(DType::kF64);
  const Value x = graph.input("x", {Shape{2, 3}, DType::kF64});
  linear(x, {.name = "unused", .units = 4, .bias = false});
  const Value y = linear(x, {.name = "used", .units = 4});
  EXPECT_THAT([&] { differentiate_sum(y); },
              ThrowsMessage<InternalError>(HasSubstr("'unused.weight'")));
}

TEST(Differentiate, RefusesASeedOfAnotherShape) {
  Graph graph(DType::kF64);
  const Value x = graph.input("x", {Shape{2, 3}, DType::kF64});
  const Value y = linear(x, {.name = "fc", .units = 4});
  const Value seed = fill(graph, "seed", x.type(), 1.0);
  EXPECT_THROW(differentiate(graph, y, seed), InternalError);
}

}  // namespace
}  // namespace ddp::test
