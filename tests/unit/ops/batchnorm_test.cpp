#include "core/ops/batchnorm/batchnorm.h"

#include <cmath>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"
#include "tests/support/graph_runner.h"
#include "tests/unit/ops/slab_op.h"

namespace ddp::test {
namespace {

constexpr std::int64_t kSamples = 5, kRows = 6, kChannels = 19;

/// One channel of the samples that count, by the textbook.
struct Channel {
  double mean = 0, variance = 0, unbiased = 0, count = 0;
};
Channel channel_of(const std::vector<double>& x, const std::vector<double>& weights,
                   std::int64_t channel) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < kSamples * kRows; ++i)
    if (weights[static_cast<std::size_t>(i / kRows)] != 0)
      values.push_back(x[static_cast<std::size_t>(i * kChannels + channel)]);
  Channel c{.count = static_cast<double>(values.size())};
  c.mean = std::accumulate(values.begin(), values.end(), 0.0) / c.count;
  for (const double v : values) c.variance += (v - c.mean) * (v - c.mean);
  c.unbiased = c.variance / (c.count - 1);
  c.variance /= c.count;
  return c;
}

class BatchNormOf : public testing::TestWithParam<DType> {
 protected:
  BatchNormOf() : graph_(GetParam()) {
    const Value x = graph_.input("x", {{kSamples, 2, 3, kChannels}, GetParam()});
    const Value weights = graph_.input("weights", {{kSamples}, DType::kF32});
    y_ = batchnorm(x, weights, {.name = "bn"});
  }
  GraphRunner run(double offset, const std::vector<double>& weights) {
    GraphRunner runner(graph_, {.threads = 2});
    runner.fill_parameters(0.5, 1.5);
    runner.fill_uniform(runner.id("x"), offset - 1, offset + 1);
    runner.set(runner.id("weights"), weights);
    runner.run();
    return runner;
  }
  double epsilon() const {
    return GetParam() == DType::kF64 ? std::numeric_limits<double>::epsilon()
                                     : static_cast<double>(std::numeric_limits<float>::epsilon());
  }
  Graph graph_;
  Value y_;
};

TEST_P(BatchNormOf, PaddingStaysOutOfTheStatistics) {
  for (const std::vector<double>& weights :
       {std::vector<double>{1, 1, 1, 1, 1}, {1, 0, 1, 1, 0}, {0, 0, 1, 0, 0}}) {
    const GraphRunner runner = run(0.5, weights);
    const std::vector<double> x = runner.get(runner.id("x")), y = runner.get(y_.id),
                              weight = runner.get(runner.id("bn.weight")),
                              bias = runner.get(runner.id("bn.bias")),
                              statistics = runner.get(graph_.statistics()[0].contribution);
    for (std::int64_t c = 0; c < kChannels; ++c) {
      const auto at = static_cast<std::size_t>(c);
      const Channel expected = channel_of(x, weights, c);
      EXPECT_NEAR(statistics[at], expected.count * expected.mean, 100 * epsilon());
      EXPECT_NEAR(statistics[at + kChannels], expected.count * expected.unbiased, 100 * epsilon());
      for (std::int64_t i = 0; i < kSamples * kRows; ++i) {
        const auto e = static_cast<std::size_t>(i * kChannels + c);
        const double counted =
            (x[e] - expected.mean) / std::sqrt(expected.variance + 1e-5) * weight[at] + bias[at];
        EXPECT_NEAR(y[e], weights[static_cast<std::size_t>(i / kRows)] == 0 ? 0 : counted,
                    200 * epsilon());
      }
    }
    EXPECT_EQ(statistics.back(),
              static_cast<double>(kRows) * std::accumulate(weights.begin(), weights.end(), 0.0));
  }
}

TEST_P(BatchNormOf, AMicroBatchOfPaddingContributesNothingAndGivesZeros) {
  const GraphRunner runner = run(1e6, {0, 0, 0, 0, 0});
  EXPECT_THAT(runner.get(graph_.statistics()[0].contribution), testing::Each(0.0));
  EXPECT_THAT(runner.get(y_.id), testing::Each(0.0));
}

TEST_P(BatchNormOf, ALargeMeanDoesNotEatTheVariance) {
  const std::vector<double> ones(kSamples, 1);
  const GraphRunner runner = run(GetParam() == DType::kF64 ? 1e6 : 1e3, ones);
  const std::vector<double> x = runner.get(runner.id("x")),
                            statistics = runner.get(graph_.statistics()[0].contribution);
  for (std::int64_t c = 0; c < kChannels; ++c) {
    const Channel expected = channel_of(x, ones, c);
    EXPECT_NEAR(statistics[static_cast<std::size_t>(c + kChannels)] / expected.count,
                expected.unbiased, 1e-8 + 100 * epsilon());
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, BatchNormOf, testing::Values(DType::kF32, DType::kF64),
                         [](const auto& instance) { return std::string(name_of(instance.param)); });

TEST(BatchNorm, RefusesOneValuePerChannel) {
  Graph graph(DType::kF32);
  const Value x = graph.input("x", {{1, 1, 1, 4}, DType::kF32});
  const Value weights = graph.input("weights", {{1}, DType::kF32});
  EXPECT_THAT([&] { batchnorm(x, weights, {.name = "bn"}); },
              testing::ThrowsMessage<ConfigError>(testing::HasSubstr("one value per channel")));
}

TEST(BatchNorm, RefusesAnEpsOrMomentumThatIsNoneInBothKindsOfGraph) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(),
                   kInfinity = std::numeric_limits<double>::infinity();
  const auto refuse = [](const BatchNorm& layer, const char* what) {
    Graph graph(DType::kF32);
    const Value x = graph.input("x", {{2, 2, 2, 4}, DType::kF32});
    const Value weights = graph.input("weights", {{2}, DType::kF32});
    const auto says = testing::ThrowsMessage<ConfigError>(testing::HasSubstr(what));
    EXPECT_THAT([&] { batchnorm(x, weights, layer); }, says);
    EXPECT_THAT([&] { batchnorm_inference(x, layer); }, says);
  };
  for (const double eps : {-1e-5, kNaN, kInfinity}) refuse({.name = "bn", .eps = eps}, "eps");
  for (const double momentum : {-0.1, 1.1, kNaN})
    refuse({.name = "bn", .momentum = momentum}, "momentum");
}

TEST(BatchNorm, TwoLayersOfOneNameAreRefused) {
  Graph graph(DType::kF32);
  const Value x = graph.input("x", {{2, 2, 2, 4}, DType::kF32});
  const Value weights = graph.input("weights", {{2}, DType::kF32});
  const Value y = batchnorm(x, weights, {.name = "bn"});
  EXPECT_THROW(batchnorm(y, weights, {.name = "bn"}), ConfigError);
}

TEST(BatchNormInference, NormalisesWithTheRunningStatistics) {
  Graph graph(DType::kF64);
  const Value x = graph.input("x", {{1, 1, 1, 2}, DType::kF64});
  const Value y = batchnorm_inference(x, {.name = "bn", .eps = 0.25});
  GraphRunner runner(graph);
  runner.set(runner.id("x"), std::vector<double>{3, -2});
  runner.set(runner.id("bn.weight"), std::vector<double>{2, 1});
  runner.set(runner.id("bn.bias"), std::vector<double>{10, 0});
  runner.set(runner.id("bn.running_mean"), std::vector<double>{1, 2});
  runner.set(runner.id("bn.running_var"), std::vector<double>{0.75, 3.75});
  runner.run();
  EXPECT_THAT(runner.get(y.id), testing::ElementsAre(testing::DoubleEq(14), testing::DoubleEq(-2)));
}

TEST(RunningAverage, WeighsMeansByTheirCountsAndObeysSkip) {
  const Attributes attributes =
      running_average_attributes({{.offset = 0, .channels = 2, .momentum = 0.25},
                                  {.offset = 8, .channels = 1, .momentum = 1}});
  // Two channels seen by 10 values; one channel that nobody has seen.
  const Slabs sums{{20, -10, 40, 5, 10, 0, 0, 0, 7, 7, 0, 0}};
  const std::vector<double> start{1, 1, 2, 2, 9, 9, 9, 9, 3, 4, 9, 9};
  Slabs averages{start};
  StepState state;
  state.skip = 1;
  run_slab_op("running_average", attributes, sums, averages, state);
  EXPECT_EQ(averages[0], start);
  state.skip = 0;
  run_slab_op("running_average", attributes, sums, averages, state);
  EXPECT_EQ(averages[0], (std::vector<double>{1.25, 0.5, 2.5, 1.625, 9, 9, 9, 9, 3, 4, 9, 9}));
}

}  // namespace
}  // namespace ddp::test
