// add, reshape and fill.
#include <gmock/gmock.h>

#include "core/ops/add/add.h"
#include "core/ops/fill/fill.h"
#include "core/ops/reshape/reshape.h"
#include "tests/support/graph_runner.h"

namespace ddp::test {
namespace {

TEST(Add, RefusesDifferentTypes) {
  Graph graph(DType::kF32);
  const Value a = graph.input("a", {{2, 3}, DType::kF32});
  EXPECT_THROW(add(a, graph.input("b", {{3, 2}, DType::kF32})), ConfigError);
  EXPECT_THROW(add(a, graph.input("c", {{2, 3}, DType::kF64})), ConfigError);
}

TEST(Reshape, KeepsTheOrderOfElements) {
  Graph graph(DType::kF64);
  const Value x = graph.input("x", {{2, 3}, DType::kF64});
  const Value y = reshape(x, {3, 1, 2});
  GraphRunner runner(graph);
  runner.set(x.id, std::vector<double>{1, 2, 3, 4, 5, 6});
  runner.run();
  EXPECT_EQ(y.shape(), (Shape{3, 1, 2}));
  EXPECT_THAT(runner.get(y.id), testing::ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Reshape, RefusesAnotherNumberOfElements) {
  Graph graph(DType::kF64);
  const Value x = graph.input("x", {{2, 3}, DType::kF64});
  EXPECT_THROW(reshape(x, {2, 4}), ConfigError);
  EXPECT_EQ(flatten(graph.input("images", {{4, 5, 3, 2}, DType::kF64})).shape(), (Shape{4, 30}));
}

TEST(Fill, WritesTheValueInItsType) {
  Graph graph(DType::kF32);
  const Value single = fill(graph, "single", {{3}, DType::kF32}, 0.1);
  const Value precise = fill(graph, "precise", {{1, 2}, DType::kF64}, 0.1);
  GraphRunner runner(graph, {.threads = 2});
  runner.run();
  EXPECT_THAT(runner.get(single.id), testing::Each(static_cast<double>(0.1F)));
  EXPECT_THAT(runner.get(precise.id), testing::Each(0.1));
  EXPECT_THROW(fill(graph, "bytes", {{3}, DType::kU8}, 1), ConfigError);
}

}  // namespace
}  // namespace ddp::test
