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

  Pooled(const Shape& image, const std::vector<double>& pixels, const PoolOptions& options) {
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

TEST(AvgPool, DividesByTheWholeWindowThoughPaddingCountsAsZeros) {
  Graph graph(DType::kF64);
  const Value x = graph.parameter("x", {1, 2, 2, 1}, {});
  const Value y = avg_pool(x, {.kernel = 2, .stride = 1, .pad = 1});
  const Value dy = graph.input("dy", y.type());
  differentiate(graph, y, dy);
  GraphRunner runner(graph);
  runner.set(x.id, std::vector<double>{1, 2, 3, 4});
  runner.set(dy.id, std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9});
  runner.run();
  EXPECT_THAT(runner.get(y.id), testing::ElementsAre(0.25, 0.75, 0.5, 1, 2.5, 1.5, 0.75, 1.75, 1));
  EXPECT_THAT(runner.gradient(graph.parameters()[0]), testing::ElementsAre(3, 4, 6, 7));
}

TEST(AvgPool, OfOneNumberEverywhereIsThatNumber) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    Graph graph(dtype);
    const Value x = graph.input("x", {{1, 7, 7, 3}, dtype});
    const Value y = avg_pool(x, {.kernel = 3});
    GraphRunner runner(graph);
    runner.set(x.id, std::vector<double>(7 * 7 * 3, 0.75));
    runner.run();
    EXPECT_EQ(y.shape(), (Shape{1, 2, 2, 3}));
    EXPECT_THAT(runner.get(y.id), testing::Each(0.75));
  }
}

TEST(AvgPool, OfTheWholeImageIsTheGlobalAverage) {
  Graph graph(DType::kF64);
  const Value x = graph.input("x", {{2, 5, 5, 35}, DType::kF64});
  const Value window = avg_pool(x, {.kernel = 5}), global = global_average_pool(x);
  GraphRunner runner(graph);
  runner.fill_uniform(x.id, -1, 1);
  runner.run();
  EXPECT_EQ(runner.get(window.id), runner.get(global.id));
}

TEST(AvgPool, NanReachesTheWindowsOverItOnly) {
  Graph graph(DType::kF32);
  const Value x = graph.input("x", {{1, 1, 4, 1}, DType::kF32});
  const Value y = avg_pool(x, {.kernel = 1, .stride = 1});
  const Value wide = avg_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
  GraphRunner runner(graph);
  runner.set(x.id, std::vector<double>{9, 9, 9, kNan});
  runner.run();
  EXPECT_THAT(runner.get(y.id), testing::ElementsAre(9, 9, 9, testing::IsNan()));
  EXPECT_THAT(runner.get(wide.id), testing::ElementsAre(2, testing::IsNan()));
}

TEST(Pool, RefusesWindowsThatDoNotFit) {
  Graph graph(DType::kF32);
  const Value image = graph.input("image", {{1, 3, 3, 1}, DType::kF32});
  const Value matrix = graph.input("matrix", {{3, 3}, DType::kF32});
  for (const auto pool : {max_pool, avg_pool}) {
    EXPECT_THROW(pool(image, {.kernel = 4}), ConfigError);
    EXPECT_THROW(pool(image, {.kernel = 0}), ConfigError);
    EXPECT_THROW(pool(image, {.kernel = 2, .stride = -1}), ConfigError);
    EXPECT_THROW(pool(image, {.kernel = 2, .pad = 2}), ConfigError);
    EXPECT_THROW(pool(image, {.kernel = 2, .pad = -1}), ConfigError);
    EXPECT_THROW(pool(matrix, {}), ConfigError);
  }
  EXPECT_THROW(max_pool(image, {.kernel = 17, .pad = 8}), ConfigError);
  EXPECT_EQ(avg_pool(image, {.kernel = 17, .pad = 8}).shape(), (Shape{1, 1, 1, 1}));
  EXPECT_THROW(global_average_pool(matrix), ConfigError);
}

}  // namespace
}  // namespace ddp::test
