#include "core/plan/fuse.h"

#include <cstring>
#include <functional>

#include <gtest/gtest.h>

#include "core/graph/differentiate.h"
#include "core/ops/add/add.h"
#include "core/ops/batchnorm/batchnorm.h"
#include "core/ops/bias/bias.h"
#include "core/ops/conv2d/conv2d.h"
#include "core/ops/fill/fill.h"
#include "core/ops/linear/linear.h"
#include "core/ops/pool/pool.h"
#include "core/ops/relu/relu.h"
#include "core/ops/reshape/reshape.h"
#include "tests/support/graph_runner.h"

namespace ddp::test {
namespace {

using Layers = std::function<Value(Value x)>;

/// The input that batch norm reads; the same for all layers of a graph.
Value weights_of(Graph& graph) {
  for (std::size_t i = 0; i < graph.values().size(); ++i)
    if (graph.values()[i].name == "weights") return {&graph, ValueId(i)};
  return graph.input("weights", {{graph.values()[0].type.shape[0]}, DType::kF32});
}

void build(Graph& graph, const TensorType& input, const Layers& layers) {
  const Value y = layers(graph.input("x", input));
  differentiate(graph, y, fill(graph, "seed", y.type(), 0.5));
}

GraphRunner run(const Graph& graph, bool in_place) {
  GraphRunner runner(graph, {.in_place = in_place});
  runner.fill_parameters(-1, 1);
  runner.fill_uniform(runner.id("x"), -1, 1);
  for (std::size_t i = 0; i < graph.values().size(); ++i)
    if (graph.values()[i].name == "weights")
      runner.set(ValueId(i), std::vector<double>(
                                 static_cast<std::size_t>(graph.values()[i].type.elements()), 1.0));
  runner.run();
  return runner;
}

/// Fuses the graph of `layers`, expects `absorbed` ops fewer, and the same bits in the output and
/// in every gradient.
void expect_fused(const Layers& layers, const Shape& input, int absorbed) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    Graph simple(dtype), fused(dtype);
    build(simple, {input, dtype}, layers);
    build(fused, {input, dtype}, layers);
    EXPECT_EQ(fuse_epilogues(fused), absorbed);
    EXPECT_EQ(fused.ops().size() + static_cast<std::size_t>(absorbed), simple.ops().size());

    const GraphRunner reference = run(simple, false);
    for (const bool in_place : {false, true}) {
      const GraphRunner runner = run(fused, in_place);
      const ValueId output = fused.ops()[fused.ops().size() - 1].outputs[0];
      EXPECT_EQ(runner.get(output), reference.get(output));
      for (std::size_t i = 0; i < simple.parameters().size(); ++i)
        EXPECT_EQ(runner.gradient(fused.parameters()[i]),
                  reference.gradient(simple.parameters()[i]))
            << simple.parameters()[i].name << ", " << name_of(dtype);
    }
  }
}

constexpr bool kNoBias = false;

TEST(Fuse, LinearTakesItsBias) {
  expect_fused([](Value x) { return linear(x, {.name = "fc", .units = 5}); }, {3, 7}, 1);
}

TEST(Fuse, LinearTakesItsBiasAndReluAndTheirGradientsArePassedOverOnce) {
  expect_fused([](Value x) { return relu(linear(x, {.name = "fc", .units = 5})); }, {3, 7}, 3);
}

TEST(Fuse, ConvolutionTakesItsBias) {
  expect_fused(
      [](Value x) {
        return bias(conv2d(x, {.name = "conv", .filters = 5, .kernel = 3, .pad = 1}), "conv");
      },
      {2, 6, 5, 3}, 1);
}

TEST(Fuse, ConvolutionTakesItsBiasAndRelu) {
  expect_fused(
      [](Value x) {
        x = conv2d(x, {.name = "conv", .filters = 5, .kernel = 3, .stride = 2, .pad = 1});
        return max_pool(relu(bias(x, "conv")), {.kernel = 2});
      },
      {2, 6, 5, 3}, 3);
}

TEST(Fuse, EveryLayerOfAChainIsFused) {
  expect_fused(
      [](Value x) {
        x = relu(linear(x, {.name = "fc1", .units = 5}));
        x = relu(linear(x, {.name = "fc2", .units = 4}));
        return linear(x, {.name = "fc3", .units = 3});
      },
      {3, 7}, 7);
}

Value norm(Value x, const std::string& name) {
  return batchnorm(x, weights_of(*x.graph), {.name = name});
}
Value conv(Value x, const std::string& name, std::int64_t filters) {
  return conv2d(x, {.name = name, .filters = filters, .kernel = 3, .pad = 1});
}

TEST(Fuse, BatchNormTakesItsReluAndTheirGradientsArePassedOverOnce) {
  expect_fused([](Value x) { return conv(relu(norm(conv(x, "conv1", 5), "bn1")), "conv2", 3); },
               {2, 6, 5, 3}, 2);
}

TEST(Fuse, BatchNormTakesTheResidualBranchInFrontOfIt) {
  expect_fused(
      [](Value x) {
        const Value y = relu(norm(conv(x, "conv1", 4), "bn1"));
        return conv(relu(add(norm(conv(y, "conv2", 4), "bn2"), y)), "conv3", 2);
      },
      {2, 6, 5, 3}, 5);
}

TEST(Fuse, OfTwoBatchNormsTheLaterOneTakesTheSum) {
  expect_fused(
      [](Value x) {
        const Value left = norm(conv(x, "conv1", 4), "bn1");
        const Value right = norm(conv(x, "conv2", 4), "bn2");
        return conv(relu(add(left, right)), "conv3", 2);
      },
      {2, 6, 5, 3}, 3);
}

TEST(Fuse, ABatchNormThatSomebodyElseNeedsIsKept) {
  expect_fused(
      [](Value x) {
        const Value y = norm(conv(x, "conv1", 4), "bn1");
        return add(relu(y), y);
      },
      {2, 6, 5, 3}, 0);
}

TEST(Fuse, ALayerWithoutBiasStaysAsItIs) {
  expect_fused([](Value x) { return relu(linear(x, {.name = "fc", .units = 5, .bias = kNoBias})); },
               {3, 7}, 0);
}

TEST(Fuse, AProductThatSomebodyElseNeedsIsKept) {
  expect_fused(
      [](Value x) {
        const Value y = linear(x, {.name = "fc", .units = 5, .bias = kNoBias});
        return add(bias(y, "fc"), y);
      },
      {3, 7}, 0);
}

TEST(Fuse, ASumThatSomebodyElseNeedsIsKeptBeforeItsRelu) {
  expect_fused(
      [](Value x) {
        const Value y = linear(x, {.name = "fc", .units = 5});
        return add(relu(y), y);
      },
      {3, 7}, 1);
}

TEST(Fuse, AReluBehindSomethingElseIsKept) {
  expect_fused([](Value x) { return relu(flatten(linear(x, {.name = "fc", .units = 5}))); }, {3, 7},
               1);
}

TEST(Fuse, TwoBiasesOnOneProductAreKept) {
  expect_fused(
      [](Value x) {
        const Value y = linear(x, {.name = "fc", .units = 5, .bias = kNoBias});
        return add(bias(y, "left"), bias(y, "right"));
      },
      {3, 7}, 0);
}

}  // namespace
}  // namespace ddp::test
