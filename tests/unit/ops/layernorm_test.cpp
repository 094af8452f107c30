#include "core/ops/layernorm/layernorm.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include "core/graph/differentiate.h"
#include "core/ops/linear/linear.h"
#include "core/ops/relu/relu.h"
#include "core/ops/reshape/reshape.h"
#include "tests/support/gradcheck.h"

namespace ddp::test {
namespace {

using testing::ElementsAre;

struct Normalized {
  std::vector<double> x, weight, bias, y, mean, inverse;
};

/// Rows within 1 of `offset`, weights and biases in [0.5, 1.5).
Normalized normalize(const Shape& shape, double offset, double eps, DType dtype) {
  Graph graph(dtype);
  const Value x = graph.input("x", {shape, dtype});
  const Value y = layernorm(x, {.name = "ln", .eps = eps});
  GraphRunner runner(graph, {.threads = 2});
  runner.fill_parameters(0.5, 1.5);
  runner.fill_uniform(x.id, offset - 1, offset + 1);
  runner.run();
  return {.x = runner.get(x.id),
          .weight = runner.get(runner.id("ln.weight")),
          .bias = runner.get(runner.id("ln.bias")),
          .y = runner.get(y.id),
          .mean = runner.get(runner.id("ln:1")),
          .inverse = runner.get(runner.id("ln:2"))};
}

class LayerNormOf : public testing::TestWithParam<DType> {
 protected:
  double epsilon() const {
    return GetParam() == DType::kF64 ? std::numeric_limits<double>::epsilon()
                                     : double{std::numeric_limits<float>::epsilon()};
  }
};

TEST_P(LayerNormOf, FollowsTheDefinition) {
  constexpr std::int64_t kRows = 6, kColumns = 45;
  constexpr double kEps = 0.01;
  const Normalized run = normalize({2, 3, kColumns}, 0.5, kEps, GetParam());
  std::vector<double> expected;
  for (std::int64_t i = 0; i < kRows; ++i) {
    const auto row = run.x.begin() + i * kColumns;
    double mean = 0, variance = 0;
    for (std::int64_t j = 0; j < kColumns; ++j) mean += row[j] / kColumns;
    for (std::int64_t j = 0; j < kColumns; ++j)
      variance += (row[j] - mean) * (row[j] - mean) / kColumns;
    const double inverse = 1 / std::sqrt(variance + kEps);
    const auto at = static_cast<std::size_t>(i);
    EXPECT_NEAR(run.mean[at], mean, 100 * epsilon());
    EXPECT_NEAR(run.inverse[at], inverse, 100 * epsilon());
    for (std::size_t j = 0; j < kColumns; ++j)
      expected.push_back((row[static_cast<std::int64_t>(j)] - mean) * inverse * run.weight[j] +
                         run.bias[j]);
  }
  expect_close(run.y, expected, 100 * epsilon(), "y");
}

TEST_P(LayerNormOf, ALargeMeanDoesNotEatTheVariance) {
  const Normalized run =
      normalize({1, 64}, GetParam() == DType::kF64 ? 1e6 : 1e3, 1e-5, GetParam());
  double mean = 0, variance = 0;
  for (const double x : run.x) mean += x / 64;
  for (const double x : run.x) variance += (x - mean) * (x - mean) / 64;
  EXPECT_NEAR(run.inverse[0], 1 / std::sqrt(variance + 1e-5), 1e-8 + 10 * epsilon());
}

TEST_P(LayerNormOf, OfOneColumnIsTheBiasAndGivesNoGradientBack) {
  Graph graph(GetParam());
  const Value x = graph.parameter("x", {3, 1}, {});
  const Value y = layernorm(x, {.name = "ln"});
  const Value seed = graph.input("seed", y.type());
  differentiate(graph, y, seed);
  GraphRunner runner(graph);
  runner.set(x.id, std::vector<double>{-7, 0, 1e6});
  runner.set(runner.id("ln.weight"), std::vector<double>{2});
  runner.set(runner.id("ln.bias"), std::vector<double>{0.25});
  runner.set(seed.id, std::vector<double>{1, 2, 4});
  runner.run();
  EXPECT_THAT(runner.get(y.id), ElementsAre(0.25, 0.25, 0.25));
  EXPECT_THAT(runner.gradient(graph.parameters()[0]), ElementsAre(0, 0, 0));
  EXPECT_THAT(runner.gradient(graph.parameters()[1]), ElementsAre(0));
  EXPECT_THAT(runner.gradient(graph.parameters()[2]), ElementsAre(7));
}

TEST_P(LayerNormOf, NanStaysInItsRow) {
  Graph graph(GetParam());
  const Value x = graph.input("x", {{2, 3}, GetParam()});
  const Value y = layernorm(x, {.name = "ln", .eps = 0});
  GraphRunner runner(graph);
  runner.set(runner.id("ln.weight"), std::vector<double>{1, 1, 1});
  runner.set(runner.id("ln.bias"), std::vector<double>{0, 0, 0});
  runner.set(x.id, std::vector<double>{1, NAN, 2, 5, 5, 8});
  runner.run();
  const std::vector<double> result = runner.get(y.id);
  for (std::size_t j = 0; j < 3; ++j) EXPECT_TRUE(std::isnan(result[j]));
  const double unit = 1 / std::sqrt(2);
  expect_close(std::span(result).subspan(3), std::vector<double>{-unit, -unit, 2 * unit},
               4 * epsilon(), "the row without NaN");
}

INSTANTIATE_TEST_SUITE_P(DTypes, LayerNormOf, testing::Values(DType::kF32, DType::kF64),
                         [](const auto& instance) { return std::string(name_of(instance.param)); });

TEST(LayerNorm, StartsAsTheIdentityWithoutDecay) {
  Graph graph(DType::kF32);
  layernorm(graph.input("x", {{2, 5}, DType::kF32}), {.name = "ln"});
  ASSERT_EQ(graph.parameters().size(), 2U);
  const Parameter &weight = graph.parameters()[0], &bias = graph.parameters()[1];
  EXPECT_EQ(weight.name, "ln.weight");
  EXPECT_EQ(weight.init.kind, Init::Kind::kOne);
  EXPECT_EQ(bias.name, "ln.bias");
  EXPECT_EQ(bias.init.kind, Init::Kind::kZero);
  for (const Parameter& parameter : graph.parameters()) {
    EXPECT_FALSE(parameter.decay);
    EXPECT_TRUE(parameter.file.order.empty());
  }
}

TEST(LayerNorm, ColumnsOfAFlattenedImageAreStoredChannelsFirst) {
  Graph graph(DType::kF32);
  const Value x = relu(flatten(graph.input("x", {{2, 4, 5, 3}, DType::kF32})));
  linear(layernorm(x, {.name = "ln"}), {.name = "fc", .units = 7});
  for (const std::size_t i : {0U, 1U}) {
    const FileLayout& file = graph.parameters()[i].file;
    EXPECT_EQ(file.view, (Shape{4, 5, 3}));
    EXPECT_THAT(file.order, ElementsAre(2, 0, 1));
    EXPECT_EQ(file.file, (Shape{60}));
  }
  EXPECT_THAT(graph.parameters()[2].file.order, ElementsAre(0, 3, 1, 2)) << "behind the layer norm";
}

TEST(LayerNorm, RefusesScalarsEmptyRowsAndWeightsOfAnotherWidth) {
  Graph graph(DType::kF32);
  EXPECT_THROW(layernorm(graph.input("x", {{}, DType::kF32}), {.name = "scalar"}), ConfigError);
  EXPECT_THROW(layernorm(graph.input("x", {{2, 0}, DType::kF32}), {.name = "empty"}), ConfigError);
  const Value x = graph.input("rows", {{2, 5}, DType::kF32});
  const Value w = graph.parameter("w", {4}, {});
  EXPECT_THAT(
      [&] {
        graph.add_op("layernorm", "norm", {x, w, w}, {{"eps", 1e-5}});
      },
      testing::ThrowsMessage<ConfigError>(testing::AllOf(testing::HasSubstr("layer 'norm'"),
                                                         testing::HasSubstr("rows 2x5"),
                                                         testing::HasSubstr("w 4"))));
  EXPECT_THROW(layernorm(x, {.name = "negative", .eps = -1}), ConfigError);
}

}  // namespace
}  // namespace ddp::test
