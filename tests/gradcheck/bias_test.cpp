#include "core/ops/bias/bias.h"

#include <gtest/gtest.h>

#include "core/graph/differentiate.h"
#include "core/ops/relu/relu.h"
#include "tests/support/gradcheck.h"

namespace ddp::test {
namespace {

// Channels below, at and beyond the group of 32, rows below and beyond the block of 64.
TEST(BiasGradient, IsRightInEveryElement) {
  for (const Shape& x : {Shape{5}, Shape{3, 1}, Shape{70, 3}, Shape{2, 3, 2, 32}, Shape{2, 35}})
    expect_op_is_right(
        [](Graph&, std::span<const Value> inputs) { return bias(inputs[0], "layer"); }, {x}, 70);
}

TEST(BiasReluGradient, FusedIsTheSameBytesAsBiasBehindRelu) {
  for (const DType dtype : {DType::kF32, DType::kF64})
    for (const Shape& x : {Shape{3, 1}, Shape{70, 3}, Shape{2, 3, 2, 32}, Shape{150, 67}})
      for (const int threads : {1, 2, 3}) {
        Graph graph(dtype);
        const Value y = relu(bias(graph.parameter("x", x, {}), "layer"));
        const Value seed = graph.input("seed", y.type());
        differentiate(graph, y, seed);
        const std::vector<Value> fused = graph.add_op("bias_relu_backward", "fused", {seed, y});
        GraphRunner runner(graph, {.threads = threads});
        runner.fill_parameters(-1, 1);
        runner.fill_uniform(seed.id, -1, 1);
        runner.run();
        EXPECT_EQ(runner.get(fused[0].id), runner.gradient(graph.parameters()[0]));
        EXPECT_EQ(runner.get(fused[1].id), runner.gradient(graph.parameters()[1]));
      }
}

TEST(BiasReluGradient, MayOverwriteTheGradientItTakes) {
  Graph graph(DType::kF64);
  const Value dy = relu(
      graph.input("dy", {{9, 5}, DType::kF64}));  // an intermediate, so that it may be overwritten
  const Value y = graph.input("y", {{9, 5}, DType::kF64});
  const std::vector<Value> fused = graph.add_op("bias_relu_backward", "fused", {dy, y});
  GraphRunner apart(graph), in_place(graph, {.threads = 1, .in_place = true});
  for (GraphRunner* runner : {&apart, &in_place}) {
    runner->fill_uniform(runner->id("dy"), 0, 1, 1);
    runner->fill_uniform(y.id, -1, 1, 2);
    runner->run();
  }
  ASSERT_EQ(in_place.view(dy.id).data, in_place.view(fused[0].id).data);
  EXPECT_EQ(in_place.get(fused[0].id), apart.get(fused[0].id));
  EXPECT_EQ(in_place.get(fused[1].id), apart.get(fused[1].id));
}

}  // namespace
}  // namespace ddp::test
