#include "core/ops/relu/relu.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/graph_runner.h"

namespace ddp::test {
namespace {

using testing::ElementsAre;
using testing::IsNan;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Relu, KeepsPositiveNumbersOnly) {
  Graph graph(DType::kF32);
  const Value x = graph.input("x", {{4}, DType::kF32});
  const Value y = relu(x);
  GraphRunner runner(graph);
  runner.set(x.id, std::vector<double>{-1, 0, 0.5, -INFINITY});
  runner.run();
  EXPECT_THAT(runner.get(y.id), ElementsAre(0, 0, 0.5, 0));
}

TEST(Relu, PassesNanForwardAndBackward) {
  Graph graph(DType::kF32);
  const Value x = graph.input("x", {{2}, DType::kF32}), dy = graph.input("dy", {{2}, DType::kF32});
  const Value y = relu(x);
  const Value dx = graph.add("relu_backward", "dx", {dy, y});
  GraphRunner runner(graph);
  runner.set(x.id, std::vector<double>{kNan, 1});
  runner.set(dy.id, std::vector<double>{3, kNan});
  runner.run();
  EXPECT_THAT(runner.get(y.id), ElementsAre(IsNan(), 1));
  EXPECT_THAT(runner.get(dx.id), ElementsAre(3, IsNan()));
}

}  // namespace
}  // namespace ddp::test
