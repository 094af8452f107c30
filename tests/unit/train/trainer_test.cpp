#include "core/train/trainer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/training/training.h"

namespace ddp::test {
namespace {

TEST(Evaluating, DoesNotChangeTraining) {
  for (const int ranks : {1, 2}) {
    TrainingRun run{.model = "convnet", .ranks = ranks, .steps = 5, .compute = DType::kF32};
    const TrainingOutcome without = train(run);
    std::atomic<int> evaluations = 0;
    run.adjust = [&](int, TrainerOptions& options, TrainerHooks& hooks) {
      options.evaluate_every.steps = 1;
      hooks.on_evaluation = [&](const StepReport&, const Evaluation&, bool) { ++evaluations; };
    };
    const TrainingOutcome with = train(run);
    EXPECT_EQ(evaluations, 5 * ranks);
    EXPECT_EQ(with.replica_hashes, without.replica_hashes);
    for (std::size_t i = 0; i < with.steps.size(); ++i)
      EXPECT_EQ(with.steps[i].loss, without.steps[i].loss);
  }
}

TEST(Evaluating, IsDueEverySoManyStepsAndAtTheEnd) {
  TrainingRun run{.steps = 7};
  std::vector<std::int64_t> steps;
  run.adjust = [&](int, TrainerOptions& options, TrainerHooks& hooks) {
    options.evaluate_every.steps = 3;
    hooks.on_evaluation = [&](const StepReport& report, const Evaluation&, bool) {
      steps.push_back(report.step);
    };
  };
  train(run);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{3, 6, 7}));
}

TEST(Evaluating, ByTimeFollowsTheClockOfRankZeroOnAllRanks) {
  for (const int hurried : {0, 1}) {
    TrainingRun run{.ranks = 2, .steps = 4};
    std::array<std::atomic<int>, 2> evaluations{};
    run.adjust = [&](int rank, TrainerOptions& options, TrainerHooks& hooks) {
      options.evaluate_every.seconds = rank == hurried ? 1e-9 : 1e9;
      hooks.on_evaluation = [&, rank](const StepReport&, const Evaluation&, bool) {
        ++evaluations[static_cast<std::size_t>(rank)];
      };
    };
    train(run);
    EXPECT_EQ(evaluations[0], hurried == 0 ? 4 : 1);
    EXPECT_EQ(evaluations[1], evaluations[0]);
  }
}

TEST(Evaluating, TellsTheBestSoFar) {
  TrainingRun run{.steps = 30, .train_samples = 200, .validation_samples = 50};
  std::vector<double> top1;
  std::vector<bool> best;
  run.adjust = [&](int, TrainerOptions& options, TrainerHooks& hooks) {
    options.evaluate_every.steps = 2;
    hooks.on_evaluation = [&](const StepReport&, const Evaluation& evaluation, bool is_best) {
      top1.push_back(evaluation.top1);
      best.push_back(is_best);
    };
  };
  const TrainResult result = train(run).results[0];
  double highest = -1;
  for (std::size_t i = 0; i < top1.size(); ++i) {
    EXPECT_EQ(best[i], top1[i] > highest) << "evaluation " << i;
    if (top1[i] > highest) {
      highest = top1[i];
      EXPECT_LE(result.best_step, 30);
    }
  }
  EXPECT_EQ(result.best_evaluation->top1, highest);
  EXPECT_GT(highest, top1[0]) << "nothing was learnt";
}

TEST(Stopping, OneRankThatWantsToStopsAllAtTheSameStep) {
  std::atomic<bool> flag = false, never = false;
  TrainingRun run{.ranks = 3, .global_batch = 12, .steps = 8};
  run.adjust = [&](int rank, TrainerOptions&, TrainerHooks& hooks) {
    hooks.stop_requested = rank == 1 ? &flag : &never;
    if (rank == 1)
      hooks.on_step_begin = [&](std::int64_t step) {
        if (step == 3) flag = true;
      };
  };
  const TrainingOutcome outcome = train(run);
  for (const TrainResult& result : outcome.results) {
    EXPECT_EQ(result.steps, 3);
    EXPECT_TRUE(result.stopped);
    EXPECT_TRUE(result.last_evaluation) << "a stopped run is evaluated too";
  }
  for (const std::string& hash : outcome.replica_hashes) EXPECT_EQ(hash, outcome.replica_hashes[0]);
}

TEST(Stopping, AtAStepLeavesTheScheduleAsItIs) {
  TrainingRun run{.steps = 6};
  const TrainingOutcome whole = train(run);
  run.adjust = [](int, TrainerOptions& options, TrainerHooks&) { options.stop_at_step = 4; };
  const TrainingOutcome stopped = train(run);
  ASSERT_EQ(stopped.steps.size(), 4U);
  EXPECT_TRUE(stopped.results[0].stopped);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(stopped.steps[i].loss, whole.steps[i].loss);
    EXPECT_EQ(stopped.steps[i].learning_rate, whole.steps[i].learning_rate);
  }
}

TEST(Stopping, AfterTheTimeLimitAndNotWithoutOne) {
  TrainingRun run{.ranks = 2, .steps = 5};
  EXPECT_FALSE(train(run).results[0].stopped);
  // Only rank 1 has a clock: its vote is enough.
  run.adjust = [](int rank, TrainerOptions& options, TrainerHooks&) {
    options.max_seconds = rank == 1 ? 1e-9 : 0;
  };
  for (const TrainResult& result : train(run).results) {
    EXPECT_EQ(result.steps, 1);
    EXPECT_TRUE(result.stopped);
  }
}

TEST(Stopping, AtTheLastStepIsFinishing) {
  TrainingRun run{.steps = 3};
  run.adjust = [](int, TrainerOptions& options, TrainerHooks&) { options.stop_at_step = 3; };
  EXPECT_FALSE(train(run).results[0].stopped);
}

TEST(Stopping, EarlyAfterSoManyEvaluationsWithoutABetterOne) {
  // At learning rate 0 no evaluation is better than the first, which follows step 2.
  TrainingRun run{.ranks = 2, .steps = 20, .learning_rate = 0};
  run.adjust = [](int, TrainerOptions& options, TrainerHooks&) {
    options.evaluate_every.steps = 2;
    options.early_stop = 3;
  };
  for (const TrainResult& result : train(run).results) {
    EXPECT_EQ(result.steps, 8);
    EXPECT_EQ(result.best_step, 2);
    EXPECT_TRUE(result.early_stopped);
    EXPECT_FALSE(result.stopped);
  }
}

TEST(Stopping, EarlyCountsFromTheBestEvaluation) {
  TrainingRun run{.steps = 40, .train_samples = 200, .validation_samples = 50};
  std::vector<double> top1;
  run.adjust = [&](int, TrainerOptions& options, TrainerHooks& hooks) {
    options.evaluate_every.steps = 1;
    options.early_stop = 4;
    hooks.on_evaluation = [&](const StepReport&, const Evaluation& evaluation, bool) {
      top1.push_back(evaluation.top1);
    };
  };
  const TrainResult result = train(run).results[0];
  std::size_t best = 0, last = 0;
  for (; last < top1.size() && last <= best + 4; ++last)
    if (top1[last] > top1[best]) best = last;
  EXPECT_EQ(result.best_step, static_cast<std::int64_t>(best) + 1);
  EXPECT_GT(best, 0U) << "nothing was learnt";
  EXPECT_EQ(result.early_stopped, result.steps < 40);
  if (result.early_stopped) {
    EXPECT_EQ(result.steps, result.best_step + 4);
  }
}

TEST(Stopping, EarlyAtTheLastStepIsFinishing) {
  TrainingRun run{.steps = 3, .learning_rate = 0};
  run.adjust = [](int, TrainerOptions& options, TrainerHooks&) {
    options.evaluate_every.steps = 1;
    options.early_stop = 2;
  };
  EXPECT_FALSE(train(run).results[0].early_stopped);
}

TEST(Diverged, SkippingOneBadStepChangesNothingElse) {
  TrainingRun run{.ranks = 2, .steps = 5, .on_nan = "skip"};
  const TrainingOutcome reference = train(run);

  // On rank 1, one weight is bad during step 3 only.
  struct Memory {
    double* weight = nullptr;
    double good = 0;
    std::span<const std::byte> parameters, optimizer;
    std::vector<std::byte> parameters_before, optimizer_before;
  };
  std::array<Memory, 2> memories;
  run.disturb = [&](int rank, const Program& program, const RunMemory& memory) {
    Memory& mine = memories[static_cast<std::size_t>(rank)];
    mine.parameters = {memory.base(Region::kParameters), memory.bytes(Region::kParameters)};
    mine.optimizer = {memory.base(Region::kOptimizer), memory.bytes(Region::kOptimizer)};
    mine.weight = reinterpret_cast<double*>(memory.base(Region::kParameters)) +
                  program.layout().segments.back().offset;
  };
  run.adjust = [&](int rank, TrainerOptions&, TrainerHooks& hooks) {
    Memory& mine = memories[static_cast<std::size_t>(rank)];
    hooks.on_step_begin = [&mine, rank](std::int64_t step) {
      if (step != 3) return;
      mine.parameters_before.assign(mine.parameters.begin(), mine.parameters.end());
      mine.optimizer_before.assign(mine.optimizer.begin(), mine.optimizer.end());
      mine.good = *mine.weight;
      if (rank == 1) *mine.weight = std::numeric_limits<double>::quiet_NaN();
    };
    hooks.on_step = [&mine](const StepReport& report) {
      if (report.step != 3) return;
      *mine.weight = mine.good;
      EXPECT_TRUE(std::ranges::equal(mine.parameters, mine.parameters_before));
      EXPECT_TRUE(std::ranges::equal(mine.optimizer, mine.optimizer_before));
    };
  };
  const TrainingOutcome outcome = train(run);
  ASSERT_EQ(outcome.steps.size(), 5U);
  for (const StepReport& step : outcome.steps) EXPECT_EQ(step.skipped, step.step == 3);
  // The schedule counts updates: step 4 does what step 3 would have done.
  EXPECT_EQ(outcome.steps[3].learning_rate, reference.steps[2].learning_rate);
  EXPECT_EQ(outcome.replica_hashes[0], outcome.replica_hashes[1]);
}

/// Makes the first weight of rank 0 NaN before each of the steps [first, last], and heals it
/// behind it.
void spoil_steps(TrainingRun& run, std::int64_t first, std::int64_t last) {
  struct Memory {
    double* weight = nullptr;
    double good = 0;
  };
  const auto memory = std::make_shared<Memory>();
  run.disturb = [memory](int rank, const Program&, const RunMemory& of_run) {
    if (rank == 0) memory->weight = reinterpret_cast<double*>(of_run.base(Region::kParameters));
  };
  run.adjust = [=](int rank, TrainerOptions&, TrainerHooks& hooks) {
    if (rank != 0) return;
    hooks.on_step_begin = [=](std::int64_t step) {
      if (step < first || step > last) return;
      memory->good = *memory->weight;
      *memory->weight = std::numeric_limits<double>::quiet_NaN();
    };
    hooks.on_step = [=](const StepReport& report) {
      if (report.step >= first && report.step <= last) *memory->weight = memory->good;
    };
  };
}

/// The sentence of the AgreedFailure (exit 8) that a run ends with; empty if it finishes.
std::string divergence_of(const TrainingRun& run) {
  try {
    train(run);
  } catch (const AgreedFailure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::kDiverged);
    return failure.what();
  }
  return "";
}

TEST(Diverged, ASkippedStepIsLeftOutOfTheTrainingLoss) {
  TrainingRun run{.ranks = 2, .steps = 4, .on_nan = "skip"};
  spoil_steps(run, 2, 2);
  const TrainingOutcome outcome = train(run);
  ASSERT_TRUE(std::isnan(outcome.steps[1].loss));
  double sum = 0;
  for (const std::size_t i : {0U, 2U, 3U}) sum += outcome.steps[i].loss;
  EXPECT_NEAR(outcome.results[0].train_loss, sum / 3, 1e-12);
}

TEST(Diverged, TooManySkipsInARowEndTheRun) {
  TrainingRun run{.steps = kMostSkipsInARow + 3, .on_nan = "skip"};
  spoil_steps(run, 2, kMostSkipsInARow);  // one less than it takes
  EXPECT_EQ(divergence_of(run), "");
  spoil_steps(run, 2, kMostSkipsInARow + 1);
  EXPECT_THAT(divergence_of(run), testing::AllOf(testing::HasSubstr("step 101: the last 100"),
                                                 testing::HasSubstr("--lr")));
}

TEST(Diverged, ALastUpdateThatSpoilsTheWeightsIsNoFinish) {
  // In step 1, which is the last, loss and gradient are still finite.
  TrainingRun run{.ranks = 2, .steps = 1, .compute = DType::kF32, .learning_rate = 1e38};
  EXPECT_THAT(divergence_of(run),
              testing::AllOf(testing::HasSubstr("evaluation after step 1"),
                             testing::HasSubstr("not finite"), testing::HasSubstr("lower --lr")));
}

TEST(Diverged, UnderSkipOnlyWeightsThatAreNotFiniteAreNoFinish) {
  // Skipped or not, weights so large that the evaluation overflows are finite.
  TrainingRun run{.steps = 1, .compute = DType::kF32, .on_nan = "skip", .learning_rate = 1e30};
  EXPECT_EQ(divergence_of(run), "");
  EXPECT_TRUE(std::isnan(train(run).evaluation.loss));
  float* weight = nullptr;
  run.disturb = [&](int, const Program&, const RunMemory& memory) {
    weight = reinterpret_cast<float*>(memory.base(Region::kParameters));
  };
  run.adjust = [&](int, TrainerOptions&, TrainerHooks& hooks) {
    hooks.on_step = [&](const StepReport&) { *weight = std::numeric_limits<float>::infinity(); };
  };
  EXPECT_THAT(divergence_of(run), testing::HasSubstr("is not finite any more"));
}

TEST(Training, ARankWithPaddingOnlyLeavesADeepNetFinite) {
  // 11 samples in batches of 8: in step 2 rank 0 has three samples and rank 1 has none.
  TrainingRun run{.model = "resnet18",
                  .ranks = 2,
                  .global_batch = 8,
                  .steps = 3,
                  .compute = DType::kF32,
                  .train_samples = 11,
                  .validation_samples = 4,
                  .drop_last = false,
                  .image = Shape{8, 8, 3}};
  const TrainingOutcome two = train(run);
  EXPECT_EQ(two.steps[1].samples, 3);
  EXPECT_EQ(two.replica_hashes[0], two.replica_hashes[1]);
  run.ranks = 1;
  run.accum = 2;
  const TrainingOutcome one = train(run);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(std::isfinite(two.steps[i].gradient_norm));
    EXPECT_NEAR(two.steps[i].loss, one.steps[i].loss, 1e-3 * one.steps[i].loss);
  }
}

TEST(Training, ReportsTheMeanLossOverTheTrueSamplesOfTheLastEpoch) {
  // 70 samples in batches of 32: the third step of each epoch has 6.
  const TrainingRun run{.global_batch = 32, .steps = 6, .drop_last = false};
  const TrainingOutcome outcome = train(run);
  double sum = 0, samples = 0;
  for (std::size_t i = 3; i < 6; ++i) {
    sum += outcome.steps[i].loss * outcome.steps[i].samples;
    samples += outcome.steps[i].samples;
  }
  EXPECT_EQ(samples, 70);
  EXPECT_NEAR(outcome.results[0].train_loss, sum / samples, 1e-12);
}

TEST(Evaluating, OfHugeLossesIsStillTheirMean) {
  // Logits of 1e12: the sum of the losses is beyond what the exact grid holds in 64-bit integers.
  TrainingRun run{.steps = 1, .learning_rate = 0};
  run.disturb = [](int, const Program& program, const RunMemory& memory) {
    for (const SlabSegment& segment : program.layout().segments) {
      if (segment.name != "fc3.weight") continue;
      auto* weights = reinterpret_cast<double*>(memory.base(Region::kParameters)) + segment.offset;
      for (std::size_t i = 0; i < segment.elements; ++i) weights[i] *= 1e12;
    }
  };
  const Evaluation alone = train(run).evaluation;
  EXPECT_GT(alone.loss, 1e9);
  run.ranks = 2;
  EXPECT_NEAR(train(run).evaluation.loss, alone.loss, alone.loss * 1e-12);
}

}  // namespace
}  // namespace ddp::test
