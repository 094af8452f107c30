#include "core/ops/bias/bias.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/conv2d/conv2d.h"
#include "tests/support/graph_runner.h"

namespace ddp::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Bias, AddsOneNumberToEachChannel) {
  Graph graph(DType::kF32);
  const Value x = graph.input("x", {{2, 1, 1, 3}, DType::kF32});
  const Value y = bias(x, "layer");
  GraphRunner runner(graph);
  runner.set(x.id, std::vector<double>{0, 1, 2, 3, 4, 5});
  runner.set(runner.id("layer.bias"), std::vector<double>{10, 20, 30});
  runner.run();
  EXPECT_THAT(runner.get(y.id), ElementsAre(10, 21, 32, 13, 24, 35));
}

TEST(Bias, StartsWithinTheBoundOfTheLayerInFront) {
  Graph graph(DType::kF32);
  const Value x = graph.input("x", {{2, 5, 5, 4}, DType::kF32});
  bias(conv2d(x, {.name = "conv", .filters = 3, .kernel = 3}), "conv");
  bias(x, "alone");
  const Parameter& behind = graph.parameters()[1];
  EXPECT_EQ(behind.name, "conv.bias");
  EXPECT_EQ(behind.init.kind, Init::Kind::kUniform);
  EXPECT_DOUBLE_EQ(behind.init.scale, 1 / std::sqrt(36.0));
  EXPECT_FALSE(behind.decay);
  EXPECT_EQ(graph.parameters()[2].init.kind, Init::Kind::kZero);
}

TEST(Bias, NamesTheLayerWhenChannelsDoNotFit) {
  Graph graph(DType::kF32);
  const Value b = graph.parameter("b", {4}, {});
  try {
    graph.add("bias", "layer.bias", {graph.input("x", {{2, 3}, DType::kF32}), b});
    FAIL() << "4 biases are added to 3 channels";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("layer 'layer.bias'"));
    EXPECT_THAT(error.what(), HasSubstr("x 2x3, b 4"));
  }
}

// Fifty thousand ones: a running float sum of tenths would be off by far more than the blocks
// allow.
TEST(BiasBackward, SumsManyRowsWithoutLosingDigits) {
  constexpr std::int64_t kRows = 50000;
  Graph graph(DType::kF32);
  const Value dy = graph.input("dy", {{kRows, 3}, DType::kF32});
  const Value db = graph.add("bias_backward", "db", {dy});
  GraphRunner runner(graph);
  runner.set(dy.id, std::vector<double>(kRows * 3, 0.1));
  runner.run();
  const double expected = static_cast<double>(0.1F) * kRows;
  // 64 roundings inside a block, one for each of the 782 blocks.
  const double tolerance =
      expected * (64 + kRows / 64.0) * std::numeric_limits<float>::epsilon() / 2;
  for (double sum : runner.get(db.id)) EXPECT_NEAR(sum, expected, tolerance);
}

}  // namespace
}  // namespace ddp::test
