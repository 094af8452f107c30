#include "core/ops/linear/linear.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/relu/relu.h"
#include "core/ops/reshape/reshape.h"
#include "tests/support/gradcheck.h"

namespace ddp::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Linear, IsRowsTimesRowsPlusBias) {
  Graph graph(DType::kF64);
  const Value x = graph.input("x", {{2, 3}, DType::kF64});
  const Value y = linear(x, {.name = "fc", .units = 2});
  GraphRunner runner(graph);
  runner.set(x.id, std::vector<double>{1, 2, 3, 4, 5, 6});
  runner.set(runner.id("fc.weight"), std::vector<double>{1, 0, -1, 2, 1, 0});
  runner.set(runner.id("fc.bias"), std::vector<double>{10, 20});
  runner.run();
  EXPECT_THAT(runner.get(y.id), ElementsAre(8, 24, 8, 33));
}

TEST(Linear, FusedWithBiasAndReluIsTheSameBytes) {
  for (const DType dtype : {DType::kF32, DType::kF64})
    for (const int threads : {1, 2, 3}) {
      Graph graph(dtype);
      const Value x = graph.parameter("x", {9, 50}, {});
      const Value plain = linear(x, {.name = "fc", .units = 35});
      const Value rectified = relu(plain);
      const Value w{&graph, graph.parameters()[1].value}, b{&graph, graph.parameters()[2].value};
      const Value fused = graph.add("linear", "fused", {x, w, b});
      const Value fused_rectified =
          graph.add("linear", "fused_relu", {x, w, b}, {{"relu", std::int64_t{1}}});
      GraphRunner runner(graph, {.threads = threads});
      runner.fill_parameters(-1, 1);
      runner.run();
      EXPECT_EQ(runner.get(fused.id), runner.get(plain.id));
      EXPECT_EQ(runner.get(fused_rectified.id), runner.get(rectified.id));
    }
}

TEST(Linear, ColumnsOfAFlattenedImageAreStoredChannelsFirst) {
  Graph graph(DType::kF32);
  linear(flatten(graph.input("x", {{2, 4, 5, 3}, DType::kF32})), {.name = "fc", .units = 7});
  const Parameter& weight = graph.parameters()[0];
  EXPECT_EQ(graph.value(weight.value).type.shape, (Shape{7, 60}));
  EXPECT_EQ(weight.file.view, (Shape{7, 4, 5, 3}));
  EXPECT_THAT(weight.file.order, ElementsAre(0, 3, 1, 2));
  EXPECT_EQ(weight.file.file, (Shape{7, 60}));
}

TEST(Linear, OtherWeightsAreStoredAsTheyAre) {
  Graph graph(DType::kF32);
  linear(linear(graph.input("x", {{2, 6}, DType::kF32}), {.name = "a", .units = 5}),
         {.name = "b", .units = 4});
  for (const Parameter& parameter : graph.parameters())
    EXPECT_THAT(parameter.file.order, IsEmpty());
}

TEST(Linear, BehindAViewThatIsNoFlattenedImageIsStoredAsItIs) {
  Graph graph(DType::kF32);
  const Value x = graph.input("x", {{2, 4, 5, 3}, DType::kF32});
  linear(reshape(x, {8, 15}), {.name = "heads", .units = 7});
  EXPECT_THAT(graph.parameters()[0].file.order, IsEmpty());
}

TEST(Linear, StartsWeightAndBiasWithinTheBoundOfItsFanIn) {
  Graph graph(DType::kF32);
  linear(graph.input("x", {{2, 16}, DType::kF32}), {.name = "fc", .units = 5});
  ASSERT_EQ(graph.parameters().size(), 2U);
  for (const Parameter& parameter : graph.parameters()) {
    EXPECT_EQ(parameter.init.kind, Init::Kind::kUniform);
    EXPECT_DOUBLE_EQ(parameter.init.scale, 0.25);
  }
  EXPECT_TRUE(graph.parameters()[0].decay);
  EXPECT_FALSE(graph.parameters()[1].decay);
}

TEST(Linear, CostsTwoFlopsATermInEachOfItsThreeProducts) {
  Graph graph(DType::kF32);
  const Value x = graph.input("x", {{3, 5}, DType::kF32}),
              w = graph.input("w", {{7, 5}, DType::kF32});
  const Value dy = graph.input("dy", {{3, 7}, DType::kF32});
  graph.add("linear", "forward", {x, w});
  graph.add("linear_backward_data", "data", {w, dy});
  graph.add("linear_backward_weight", "weight", {x, dy});
  for (const Op& op : graph.ops()) {
    const Cost cost = op.definition->cost(graph.signature(op));
    EXPECT_EQ(cost.flops, 2.0 * 3 * 5 * 7) << op.name;
    EXPECT_EQ(cost.bytes, 4.0 * (3 * 5 + 7 * 5 + 3 * 7)) << op.name;
  }
}

void expect_refused(const Shape& x, std::int64_t units, std::string_view reason) {
  Graph graph(DType::kF32);
  const Value input = graph.input("features", {x, DType::kF32});
  try {
    linear(input, {.name = "head", .units = units});
    FAIL() << "a layer that does not fit is accepted: " << reason;
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("layer 'head'"), HasSubstr("features " + x.to_string()),
                      HasSubstr(std::string(reason))));
  }
}

TEST(Linear, NamesTheLayerAndShapesThatDoNotFit) {
  expect_refused({2, 4, 5, 3}, 7, "flatten images first");
  expect_refused({2, 4}, 0, "at least 1 unit");
}

TEST(Linear, RefusesAWeightForAnotherNumberOfFeatures) {
  Graph graph(DType::kF32);
  const Value w = graph.parameter("w", {3, 5}, {});
  EXPECT_THROW(graph.add("linear", "fc", {graph.input("x", {{2, 4}, DType::kF32}), w}),
               ConfigError);
}

}  // namespace
}  // namespace ddp::test
