// Moving averages of the weights in whole runs.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <gtest/gtest.h>

#include "tests/support/training/training.h"

namespace ddp::test {
namespace {

/// A net with batch norm, so that running statistics are averaged too.
TrainingRun resnet_run() {
  return {.model = "resnet18",
          .global_batch = 16,
          .accum = 4,
          .steps = 3,
          .learning_rate = 0.01,
          .train_samples = 48,
          .validation_samples = 9,
          .image = Shape{12, 12, 3},
          .ema = 0.3};
}

std::span<double> slab_of(const RunMemory& memory, Region region) {
  return {reinterpret_cast<double*>(memory.base(region)), memory.bytes(region) / sizeof(double)};
}

TEST(Average, DoesNotChangeTraining) {
  TrainingRun run{.model = "convnet", .steps = 4};
  const TrainingOutcome without = train(run);
  run.ema = 0.9;
  const TrainingOutcome with = train(run);
  EXPECT_EQ(largest_difference(with.weights, without.weights), 0);
  EXPECT_EQ(with.evaluation.loss, without.evaluation.loss);
  EXPECT_FALSE(without.results[0].last_average_evaluation);
}

TEST(Average, FollowsWeightsAndRunningStatisticsFromTheirStart) {
  TrainingRun run = resnet_run();
  std::span<double> parameters, buffers, averages;
  std::vector<double> expected;
  const auto all_weights = [&] {
    std::vector<double> weights(parameters.begin(), parameters.end());
    weights.insert(weights.end(), buffers.begin(), buffers.end());
    return weights;
  };
  run.disturb = [&](int, const Program& program, const RunMemory& memory) {
    EXPECT_GT(program.layout().statistics_elements, 0U);
    parameters = slab_of(memory, Region::kParameters);
    buffers = slab_of(memory, Region::kBuffers);
    averages = slab_of(memory, Region::kAverage);
    expected = all_weights();
  };
  run.adjust = [&](int, TrainerOptions&, TrainerHooks& hooks) {
    hooks.on_step = [&](const StepReport& report) {
      const auto u = static_cast<double>(report.step);
      const double decay = std::min(0.3, (1 + u) / (10 + u));
      const std::vector<double> weights = all_weights();
      ASSERT_EQ(averages.size(), weights.size());
      double largest = 0;
      for (std::size_t i = 0; i < weights.size(); ++i) {
        expected[i] = decay * expected[i] + (1 - decay) * weights[i];
        largest = std::max(largest, std::abs(averages[i] - expected[i]));
      }
      EXPECT_LE(largest, 100 * std::numeric_limits<double>::epsilon()) << "step " << report.step;
    };
  };
  const TrainingOutcome outcome = train(run);
  EXPECT_GT(largest_difference(outcome.weights, outcome.averages), 1e-6);
}

TEST(Average, IsTheSameForAnyNumberOfRanksAndOnAllOfThem) {
  TrainingRun run = resnet_run();
  const TrainingOutcome reference = train(run);
  for (const int ranks : {2, 4}) {
    run.ranks = ranks;
    run.accum = 4 / ranks;
    const TrainingOutcome outcome = train(run);
    EXPECT_LE(largest_difference(reference.averages, outcome.averages), 1e-10);
    for (const std::string& hash : outcome.replica_hashes)
      EXPECT_EQ(hash, outcome.replica_hashes[0]);
    EXPECT_EQ(outcome.results[0].last_average_evaluation->top1,
              reference.results[0].last_average_evaluation->top1);
  }
}

TEST(Average, OfWeightsThatStandStillIsTheWeightsAndScoresAlike) {
  const TrainingOutcome outcome = train({.learning_rate = 0, .ema = 0.9});
  EXPECT_EQ(largest_difference(outcome.weights, outcome.averages), 0);
  EXPECT_EQ(outcome.results[0].last_average_evaluation->loss, outcome.evaluation.loss);
}

TEST(Average, IsEvaluatedAfterEveryEvaluationOfTheWeights) {
  TrainingRun run{.steps = 6, .ema = 0.9};
  std::vector<std::int64_t> steps;
  std::vector<double> losses;
  run.adjust = [&](int, TrainerOptions& options, TrainerHooks& hooks) {
    options.evaluate_every.steps = 4;
    hooks.on_evaluation = [&](const StepReport&, const Evaluation& evaluation, bool) {
      losses.push_back(evaluation.loss);
    };
    hooks.on_average_evaluation = [&](const StepReport& report, const Evaluation& evaluation) {
      steps.push_back(report.step);
      EXPECT_NE(evaluation.loss, losses.back());
    };
  };
  train(run);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{4, 6}));
  EXPECT_EQ(losses.size(), 2U);
}

TEST(Average, LeavesASkippedStepOut) {
  for (const char* optimizer : {"sgd", "lars", "adamw", "lion"}) {
    TrainingRun run{.steps = 3, .optimizer = optimizer, .on_nan = "skip", .ema = 0.9};
    std::span<double> parameters, states, averages;
    std::vector<double> states_before, averages_before;
    double good = 0;
    run.disturb = [&](int, const Program& program, const RunMemory& memory) {
      const SlabSegment& segment = program.layout().segments.back();
      parameters = slab_of(memory, Region::kParameters).subspan(segment.offset, 1);
      states = slab_of(memory, Region::kOptimizer);
      averages = slab_of(memory, Region::kAverage);
    };
    run.adjust = [&](int, TrainerOptions&, TrainerHooks& hooks) {
      hooks.on_step_begin = [&](std::int64_t step) {
        if (step != 2) return;
        states_before.assign(states.begin(), states.end());
        averages_before.assign(averages.begin(), averages.end());
        good = std::exchange(parameters[0], std::numeric_limits<double>::quiet_NaN());
      };
      hooks.on_step = [&](const StepReport& report) {
        if (report.step != 2) return;
        EXPECT_TRUE(report.skipped);
        EXPECT_TRUE(std::ranges::equal(states, states_before)) << optimizer;
        EXPECT_TRUE(std::ranges::equal(averages, averages_before)) << optimizer;
        parameters[0] = good;
      };
    };
    EXPECT_FALSE(train(run).steps[2].skipped);
  }
}

}  // namespace
}  // namespace ddp::test
