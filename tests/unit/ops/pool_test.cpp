#include "core/ops/pool/pool.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include "core/graph/differentiate.h"
#include "tests/support/graph_runner.h"

namespace ddp::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Pools one image of one channel, and sends a gradient of ones back.
struct Pooled {
  Graph graph{DType::kF32};
  Value x, y, dy;
  std::vector<double> output, gradient;

  Pooled(const Shape& image, const std::vector<double>& pixels, const MaxPoolOptions& options) {
    x = graph.parameter("x", image, {});
    y = max_pool(x, options);
    dy = graph.input("dy", y.type());
    differentiate(graph, y, dy);
    GraphRunner runner(graph);
    runner.set(x.id, pixels);
    runner.set(dy.id, std::vector<double>(static_cast<std::size_t>(y.shape().elements()), 1.0));
    runner.run();
    output = runner.get(y.id);
    gradient = runner.gradient(graph.parameters()[0]);
  }
};

TEST(MaxPool, FirstOfEqualElementsGetsTheGradient) {
  const Pooled pooled({1, 2, 4, 1}, {5, 5, 1, 2, 5, 5, 2, 2}, {.kernel = 2});
  EXPECT_THAT(pooled.output, testing::ElementsAre(5, 2));
  EXPECT_THAT(pooled.gradient, testing::ElementsAre(1, 0, 0, 1, 0, 0, 0, 0));
}

TEST(MaxPool, NanWinsWhereverItStands) {
  for (std::size_t place = 0; place < 4; ++place) {
    std::vector<double> pixels{1, kInfinity, -1, 2};
    pixels[place] = kNan;
    const Pooled pooled({1, 2, 2, 1}, pixels, {.kernel = 2});
    EXPECT_TRUE(std::isnan(pooled.output[0])) << place;
    EXPECT_EQ(pooled.gradient[place], 1) << place;
  }
}

TEST(MaxPool, PaddingIsNeverTheMaximum) {
  const Pooled pooled({1, 2, 2, 1}, {-3, -1, -kInfinity, -4}, {.kernel = 2, .stride = 1, .pad = 1});
  EXPECT_THAT(pooled.output, testing::ElementsAre(-3, -1, -1, -3, -1, -1, -kInfinity, -4, -4));
}

TEST(MaxPool, LeavesOutRowsThatFillNoWindow) {
  const Pooled pooled({1, 3, 3, 1}, {1, 2, 9, 3, 4, 9, 9, 9, 9}, {.kernel = 2});
  EXPECT_THAT(pooled.output, testing::ElementsAre(4));
  EXPECT_THAT(pooled.gradient, testing::ElementsAre(0, 0, 0, 0, 1, 0, 0, 0, 0));
}

TEST(MaxPool, RefusesWindowsThatDoNotFit) {
  Graph graph(DType::kF32);
  const Value image = graph.input("image", {{1, 3, 3, 1}, DType::kF32});
  const Value matrix = graph.input("matrix", {{3, 3}, DType::kF32});
  EXPECT_THROW(max_pool(image, {.kernel = 4}), ConfigError);
  EXPECT_THROW(max_pool(image, {.kernel = 0}), ConfigError);
  EXPECT_THROW(max_pool(image, {.kernel = 17, .pad = 8}), ConfigError);
  EXPECT_THROW(max_pool(image, {.kernel = 2, .stride = -1}), ConfigError);
  EXPECT_THROW(max_pool(image, {.kernel = 2, .pad = 2}), ConfigError);
  EXPECT_THROW(max_pool(matrix), ConfigError);
  EXPECT_THROW(global_average_pool(matrix), ConfigError);
}

}  // namespace
}  // namespace ddp::test
