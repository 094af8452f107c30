#include "core/ops/loss/loss.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>

#include "core/graph/differentiate.h"
#include "tests/support/graph_runner.h"

namespace ddp::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Batch {
  std::int64_t classes = 0;
  std::vector<double> logits, labels, weights;
};

struct Outcome {
  std::vector<double> losses, gradient;
  StepState state;
};

Outcome run_loss(const Batch& batch, double smoothing = 0, bool exact = false,
                 DType dtype = DType::kF64) {
  Graph graph(dtype);
  const auto samples = static_cast<std::int64_t>(batch.labels.size());
  const Value logits = graph.parameter("logits", {samples, batch.classes}, {});
  const Value labels = graph.input("labels", {{samples}, DType::kI32});
  const Value weights = graph.input("weights", {{samples}, DType::kF32});
  const Value losses =
      softmax_cross_entropy(logits, labels, weights, {.label_smoothing = smoothing});
  score(losses, logits, labels, weights, exact);
  const Value seed = graph.input("seed", losses.type());
  differentiate(graph, losses, seed);
  GraphRunner runner(graph, {.threads = 2});
  runner.set(logits.id, batch.logits);
  runner.set(labels.id, batch.labels);
  runner.set(weights.id, batch.weights);
  runner.set(seed.id, std::vector<double>(batch.labels.size(), 1.0));
  runner.run();
  return {runner.get(losses.id), runner.gradient(graph.parameters()[0]), runner.state};
}

TEST(SoftmaxCrossEntropy, FollowsTheFormulaWithSmoothing) {
  const Batch batch{.classes = 3, .logits = {0.5, -1, 2}, .labels = {1}, .weights = {1}};
  const double normalizer = std::log(std::exp(0.5) + std::exp(-1) + std::exp(2));
  const double mean = (0.5 - 1 + 2) / 3;
  for (const double smoothing : {0.0, 0.2, 1.0})
    EXPECT_NEAR(run_loss(batch, smoothing).losses[0],
                (1 - smoothing) * (normalizer + 1) + smoothing * (normalizer - mean), 1e-14);
}

TEST(SoftmaxCrossEntropy, StaysFiniteForHugeLogits) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    const Batch batch{
        .classes = 2, .logits = {1e30, -1e30, -1e30, -1e30}, .labels = {0, 1}, .weights = {1, 1}};
    const Outcome outcome = run_loss(batch, 0, false, dtype);
    EXPECT_EQ(outcome.losses[0], 0);
    EXPECT_NEAR(outcome.losses[1], std::log(2.0), std::numeric_limits<float>::epsilon());
    EXPECT_EQ(outcome.gradient[0], 0);
    EXPECT_EQ(outcome.gradient[1], 0);
  }
}

TEST(SoftmaxCrossEntropy, WeightZeroGivesZeroWhateverTheLogitsAre) {
  for (const double poison : {kNan, kInfinity, -kInfinity}) {
    const Batch batch{.classes = 2,
                      .logits = {poison, 1, poison, poison, 0, 0},
                      .labels = {0, 1, 0},
                      .weights = {0, 0, 1}};
    const Outcome outcome = run_loss(batch, 0.1);
    EXPECT_THAT(outcome.losses, testing::ElementsAre(0, 0, testing::DoubleEq(std::log(2.0))));
    EXPECT_THAT(std::vector(outcome.gradient.begin(), outcome.gradient.begin() + 4),
                testing::Each(0));
    EXPECT_EQ(outcome.state.nonfinite, 0);
    EXPECT_EQ(outcome.state.weight_sum, 1);
    EXPECT_EQ(outcome.state.loss_sum, outcome.losses[2]);
  }
}

TEST(SoftmaxCrossEntropy, RefusesShapesThatDoNotFit) {
  Graph graph(DType::kF32);
  const Value logits = graph.input("logits", {{4, 3}, DType::kF32});
  const Value labels = graph.input("labels", {{4}, DType::kI32});
  const Value weights = graph.input("weights", {{4}, DType::kF32});
  EXPECT_THROW(softmax_cross_entropy(logits, weights, weights), ConfigError);
  EXPECT_THROW(softmax_cross_entropy(logits, labels, labels), ConfigError);
  EXPECT_THROW(softmax_cross_entropy(labels, labels, weights), ConfigError);
  EXPECT_THROW(softmax_cross_entropy(logits, labels, weights, {.label_smoothing = 1.5}),
               ConfigError);
}

TEST(Score, EqualLogitsStandInTheOrderOfTheirClasses) {
  const std::vector<double> logits{1, 3, 3, 3, 3, 3, 2};
  const auto counts = [&](double label) {
    const StepState state =
        run_loss({.classes = 7, .logits = logits, .labels = {label}, .weights = {1}}).state;
    return std::pair{state.correct_top1, state.correct_top5};
  };
  EXPECT_EQ(counts(0), std::pair(0.0, 0.0));
  EXPECT_EQ(counts(1), std::pair(1.0, 1.0));
  EXPECT_EQ(counts(2), std::pair(0.0, 1.0));
  EXPECT_EQ(counts(5), std::pair(0.0, 1.0));
  EXPECT_EQ(counts(6), std::pair(0.0, 0.0));
}

TEST(Score, FewerThanFiveClassesAreAlwaysAmongTheFive) {
  const StepState state =
      run_loss({.classes = 3, .logits = {1, 2, 3, 3, 2, 1}, .labels = {0, 0}, .weights = {1, 1}})
          .state;
  EXPECT_EQ(state.correct_top1, 1);
  EXPECT_EQ(state.correct_top5, 2);
}

TEST(Score, NanIsNeverCorrectAndIsCounted) {
  const Batch batch{
      .classes = 2, .logits = {kNan, 1, 1, kNan, 1, 0}, .labels = {0, 0, 0}, .weights = {1, 1, 1}};
  const StepState state = run_loss(batch).state;
  EXPECT_EQ(state.correct_top1, 1);
  EXPECT_EQ(state.correct_top5, 1);
  EXPECT_EQ(state.nonfinite, 2);
  EXPECT_EQ(state.weight_sum, 3);
  EXPECT_TRUE(std::isnan(state.loss_sum));
}

TEST(Score, ExactSumIsTheSameInAnyOrderAndGrouping) {
  constexpr std::size_t kSamples = 999, kClasses = 3;
  Batch batch{.classes = kClasses,
              .logits = random_numbers(kSamples * kClasses, -9, 9, 1),
              .labels = random_numbers(kSamples, 0, kClasses, 2),
              .weights = std::vector<double>(kSamples, 1.0)};
  const double sum = run_loss(batch, 0, true, DType::kF32).state.loss_sum;

  Batch reversed = batch;
  std::ranges::reverse(reversed.labels);
  for (std::size_t i = 0; i < kSamples; ++i)
    std::copy_n(batch.logits.begin() + static_cast<std::ptrdiff_t>(i * kClasses), kClasses,
                reversed.logits.end() - static_cast<std::ptrdiff_t>((i + 1) * kClasses));
  EXPECT_EQ(run_loss(reversed, 0, true, DType::kF32).state.loss_sum, sum);

  double in_parts = 0;  // as ranks would: each sums its own samples, the others have weight zero
  for (std::size_t part = 0; part < 7; ++part) {
    Batch share = batch;
    for (std::size_t i = 0; i < kSamples; ++i) share.weights[i] = i % 7 == part ? 1 : 0;
    in_parts += run_loss(share, 0, true, DType::kF32).state.loss_sum;
  }
  EXPECT_EQ(in_parts, sum);

  const std::vector<double> losses = run_loss(batch, 0, false, DType::kF32).losses;
  EXPECT_NEAR(sum, std::accumulate(losses.begin(), losses.end(), 0.0), kSamples * 0x1p-28);
}

TEST(Score, AddsUpOverMicroSteps) {
  Graph graph(DType::kF64);
  const Value logits = graph.input("logits", {{1, 2}, DType::kF64});
  const Value labels = graph.input("labels", {{1}, DType::kI32});
  const Value weights = graph.input("weights", {{1}, DType::kF32});
  score(softmax_cross_entropy(logits, labels, weights), logits, labels, weights, false);
  GraphRunner runner(graph);
  runner.set(logits.id, std::vector<double>{2, 1});
  runner.set(labels.id, std::vector<double>{0});
  runner.set(weights.id, std::vector<double>{1});
  runner.run();
  const double once = runner.state.loss_sum;
  runner.run();
  EXPECT_EQ(runner.state.loss_sum, 2 * once);
  EXPECT_EQ(runner.state.correct_top1, 2);
}

/// Predictions of `logits` [samples, classes].
std::vector<double> predictions(const std::vector<double>& logits, std::int64_t classes,
                                DType dtype) {
  Graph graph(dtype);
  const auto samples = static_cast<std::int64_t>(logits.size()) / classes;
  const Value input = graph.input("logits", {{samples, classes}, dtype});
  const Value output = predict(input);
  GraphRunner runner(graph, {.threads = 2});
  runner.set(input.id, logits);
  runner.run();
  return runner.get(output.id);
}

TEST(Predict, IsTheLargestLogitAndTheLowestOfEqualOnes) {
  for (const DType dtype : {DType::kF32, DType::kF64})
    EXPECT_THAT(predictions({0, 2, 1, 3, 3, 1, -5, -7, -5, -kInfinity, -kInfinity, -kInfinity,
                             0, kInfinity, kInfinity},
                            3, dtype),
                testing::ElementsAre(1, 0, 0, 0, 1));
}

TEST(Predict, SaysNothingOfASampleWithANan) {
  for (const DType dtype : {DType::kF32, DType::kF64})
    EXPECT_THAT(predictions({kNan, 1, 2, 5, kNan, 3, 3, 2, kNan, 1, 2, 0}, 3, dtype),
                testing::ElementsAre(kNoPrediction, kNoPrediction, kNoPrediction, 1));
}

TEST(Predict, IsTheLabelOfExactlyTheSamplesThatScoreCountsAsCorrect) {
  constexpr std::int64_t kClasses = 5, kSamples = 40;
  Batch batch{.classes = kClasses, .weights = {1}};
  std::vector<double> logits = random_numbers(kSamples * kClasses, -2, 2, 3);
  for (double& logit : logits) logit = std::round(logit);  // many are equal
  logits[7] = kNan;
  logits[11] = kInfinity;
  const std::vector<double> predicted = predictions(logits, kClasses, DType::kF64);
  for (std::int64_t i = 0; i < kSamples; ++i)
    for (std::int64_t label = 0; label < kClasses; ++label) {
      batch.logits.assign(logits.begin() + i * kClasses, logits.begin() + (i + 1) * kClasses);
      batch.labels = {static_cast<double>(label)};
      EXPECT_EQ(run_loss(batch).state.correct_top1,
                predicted[static_cast<std::size_t>(i)] == static_cast<double>(label) ? 1 : 0)
          << "sample " << i << ", label " << label;
    }
}

}  // namespace
}  // namespace ddp::test
