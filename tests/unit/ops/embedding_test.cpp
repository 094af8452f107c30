#include "core/ops/embedding/embedding.h"

#include <limits>

#include <gmock/gmock.h>

#include "core/graph/differentiate.h"
#include "core/ops/linear/linear.h"
#include "tests/support/graph_runner.h"

namespace ddp::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsNan;

/// A table of `entries` x 2 that holds 0, 1, 2, …, looked up and sent a gradient of 1, 2, 3, …
struct LookUp {
  Graph graph{DType::kF32};
  Value y;
  std::vector<double> output, gradient;

  LookUp(std::int64_t entries, const std::vector<double>& ids, int threads = 1) {
    const Value input = graph.input("ids", {{static_cast<std::int64_t>(ids.size())}, DType::kI32});
    y = embedding(input, {.name = "table", .entries = entries, .features = 2});
    const Value seed = graph.input("seed", y.type());
    differentiate(graph, y, seed);
    GraphRunner runner(graph, {.threads = threads});
    runner.set(input.id, ids);
    runner.set(runner.id("table.weight"), counting(2 * entries, 0));
    runner.set(seed.id, counting(y.shape().elements(), 1));
    runner.run();
    output = runner.get(y.id);
    gradient = runner.gradient(graph.parameters()[0]);
  }
  static std::vector<double> counting(std::int64_t n, double from) {
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < n; ++i) numbers.push_back(from + static_cast<double>(i));
    return numbers;
  }
};

TEST(Embedding, PicksRowsAndSumsTheirGradients) {
  const LookUp run(4, {3, 0, 3});
  EXPECT_THAT(run.output, ElementsAre(6, 7, 0, 1, 6, 7));
  EXPECT_THAT(run.gradient, ElementsAre(3, 4, 0, 0, 0, 0, 1 + 5, 2 + 6));
}

TEST(Embedding, IdsOutsideTheTableGiveNanAndNoGradient) {
  constexpr double kLargest = std::numeric_limits<std::int32_t>::max();
  const LookUp run(2, {-1, 1, 2, kLargest, -kLargest - 1});
  EXPECT_THAT(run.output, ElementsAre(IsNan(), IsNan(), 2, 3, IsNan(), IsNan(), IsNan(), IsNan(),
                                      IsNan(), IsNan()));
  EXPECT_THAT(run.gradient, ElementsAre(0, 0, 3, 4));
}

// Numbers whose sum depends on the order, in a table with far fewer rows than ids.
TEST(Embedding, GradientIsTheSameBytesForAnyNumberOfThreads) {
  Graph graph(DType::kF32);
  const Value ids = graph.input("ids", {{40, 25}, DType::kI32});
  const Value y = embedding(ids, {.name = "table", .entries = 3, .features = 7});
  const Value seed = graph.input("seed", y.type());
  differentiate(graph, y, seed);
  std::vector<std::vector<double>> gradients;
  for (const int threads : {1, 2, 3, 5, 16}) {
    GraphRunner runner(graph, {.threads = threads});
    runner.fill_parameters(-1, 1);
    runner.fill_uniform(ids.id, 0, 3);
    runner.fill_uniform(seed.id, -1, 1);
    runner.run();
    gradients.push_back(runner.gradient(graph.parameters()[0]));
    EXPECT_EQ(gradients.back(), gradients.front()) << threads << " threads";
  }
}

TEST(Embedding, AppendsTheFeaturesToTheShapeOfTheIds) {
  Graph graph(DType::kF64);
  const Value y = embedding(graph.input("ids", {{2, 3, 4}, DType::kI32}),
                            {.name = "table", .entries = 10, .features = 5});
  EXPECT_EQ(y.type(), (TensorType{{2, 3, 4, 5}, DType::kF64}));
  const Parameter& table = graph.parameters()[0];
  EXPECT_EQ(table.name, "table.weight");
  EXPECT_EQ(graph.value(table.value).type.shape, (Shape{10, 5}));
  EXPECT_EQ(table.init.kind, Init::Kind::kNormal);
  EXPECT_EQ(table.init.scale, 1);
  EXPECT_TRUE(table.file.order.empty());
}

TEST(Embedding, SharesItsTableWithALinearLayerOfThatName) {
  Graph graph(DType::kF32);
  const Value x = embedding(graph.input("ids", {{6}, DType::kI32}),
                            {.name = "wte", .entries = 10, .features = 5});
  linear(x, {.name = "wte", .units = 10, .bias = false});
  EXPECT_EQ(graph.parameters().size(), 1U);
  EXPECT_THAT([&] { linear(x, {.name = "wte", .units = 9, .bias = false}); },
              testing::ThrowsMessage<ConfigError>(HasSubstr("10x5 and 9x5")));
}

TEST(Embedding, RefusesOtherIdsAndEmptyTables) {
  Graph graph(DType::kF32);
  const Value ids = graph.input("ids", {{2, 3}, DType::kI32});
  const Embedding layer{.name = "table", .entries = 4, .features = 5};
  EXPECT_THAT(
      [&] {
        embedding(graph.input("x", {{2}, DType::kF32}), layer);
      },
      testing::ThrowsMessage<ConfigError>(HasSubstr("ids of type I32, not F32")));
  EXPECT_THROW(embedding(graph.input("deep", {{1, 1, 1, 1, 1}, DType::kI32}), layer), ConfigError);
  EXPECT_THROW(embedding(graph.input("scalar", {{}, DType::kI32}), layer), ConfigError);
  EXPECT_THROW(embedding(ids, {.name = "none", .entries = 0, .features = 5}), ConfigError);
  EXPECT_THROW(embedding(ids, {.name = "flat", .entries = 4, .features = 0}), ConfigError);
}

TEST(Embedding, ReadsOnlyTheRowsThatArePicked) {
  Graph graph(DType::kF32);
  embedding(graph.input("ids", {{3}, DType::kI32}),
            {.name = "table", .entries = 50000, .features = 8});
  const Op& op = graph.ops()[0];
  EXPECT_EQ(op.definition->cost(graph.signature(op)).bytes, 3 * 4 + 2 * 3 * 8 * 4);
}

}  // namespace
}  // namespace ddp::test
