// begin_step, commit and finish_step.
#include <cmath>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>

#include "core/ops/optimizer/optimizer.h"
#include "tests/support/graph_runner.h"
#include "tests/unit/ops/slab_op.h"

namespace ddp::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

StepState finish(const std::vector<double>& gradient, const FinishStepOptions& options,
                 StepState state, int threads = 1, DType dtype = DType::kF64) {
  Slabs none;
  run_slab_op("finish_step", finish_step_attributes(options), {gradient}, none, state, threads,
              dtype);
  return state;
}

StepState with_items(double weight_sum) {
  StepState state;
  state.loss_sum = 1.5 * weight_sum;
  state.weight_sum = weight_sum;
  return state;
}

TEST(BeginStep, ClearsTheSumsAndCountsTheStep) {
  StepState state{.loss_sum = 1,
                  .weight_sum = 2,
                  .correct_top1 = 3,
                  .correct_top5 = 4,
                  .nonfinite = 5,
                  .stop_votes = 6,
                  .evaluate_votes = 7,
                  .diverged = 1,
                  .step = 8,
                  .update = 9};
  Slabs none;
  run_slab_op("begin_step", {}, {}, none, state);
  for (const double sum :
       {state.loss_sum, state.weight_sum, state.correct_top1, state.correct_top5, state.nonfinite})
    EXPECT_EQ(sum, 0);
  EXPECT_EQ(state.stop_votes, 6);
  EXPECT_EQ(state.evaluate_votes, 7);
  EXPECT_EQ(state.diverged, 1);
  EXPECT_EQ(state.step, 9U);
  EXPECT_EQ(state.update, 9U);
}

TEST(Commit, StoresTheFirstContributionAndAddsTheOthers) {
  for (const int threads : {1, 2, 3})
    for (const bool accumulate : {false, true}) {
      StepState state;
      Slabs slab{{100, 200, 300}, {1000}};
      run_slab_op("commit", commit_attributes({0, 1, 0}, accumulate),
                  {{1, 2, 3}, {4}, {10, 20, 30}}, slab, state, threads);
      if (accumulate)
        EXPECT_EQ(slab, (Slabs{{111, 222, 333}, {1004}}));
      else
        EXPECT_EQ(slab, (Slabs{{11, 22, 33}, {4}}));
    }
}

TEST(Commit, RefusesContributionsThatDoNotFit) {
  StepState state;
  const auto commit = [&](const std::vector<std::size_t>& targets, const Slabs& gradients,
                          Slabs slab) {
    run_slab_op("commit", commit_attributes(targets, false), gradients, slab, state);
  };
  EXPECT_THROW(commit({0}, {{1, 2}}, {{0}}), InternalError);
  EXPECT_THROW(commit({1}, {{1}}, {{0}}), InternalError);
  EXPECT_THROW(commit({0, 0}, {{1}}, {{0}}), InternalError);
  EXPECT_THROW(commit({0}, {{1}}, {{0}, {0}}), InternalError);
}

TEST(FinishStep, MeasuresTheNormOfTheMeanGradient) {
  const StepState state = finish({3, 0, -4}, {.nominal = 8}, with_items(4));
  EXPECT_DOUBLE_EQ(state.gradient_norm, 5.0 * 8 / 4);
  EXPECT_DOUBLE_EQ(state.gradient_scale, 8.0 / 4);
  EXPECT_EQ(state.skip, 0);
}

TEST(FinishStep, ClipsToTheAskedNorm) {
  const StepState clipped = finish({3, -4}, {.nominal = 8, .clip_norm = 2.5}, with_items(4));
  EXPECT_DOUBLE_EQ(clipped.gradient_norm, 10);
  EXPECT_DOUBLE_EQ(clipped.gradient_scale * 5, 2.5);
  const StepState small = finish({3, -4}, {.nominal = 8, .clip_norm = 10.5}, with_items(4));
  EXPECT_DOUBLE_EQ(small.gradient_scale, 2);
}

TEST(FinishStep, NormIsTheSameForAnyNumberOfThreads) {
  const std::vector<double> gradient = random_numbers(100003, -1, 1, 3);
  const double sum = std::inner_product(gradient.begin(), gradient.end(), gradient.begin(), 0.0);
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    const double norm = finish(gradient, {}, with_items(1), 1, dtype).gradient_norm;
    EXPECT_NEAR(norm / std::sqrt(sum), 1, 1e-12);
    for (const int threads : {2, 3, 5})
      EXPECT_EQ(finish(gradient, {}, with_items(1), threads, dtype).gradient_norm, norm);
  }
}

TEST(FinishStep, CountsUpdatesAndFollowsTheSchedule) {
  const FinishStepOptions options{
      .schedule = {.kind = LrKind::kLinear, .lr = 1, .warmup_updates = 2, .total_updates = 4}};
  StepState state = with_items(1);
  for (const double lr : {0.5, 1.0, 1.0, 0.5, 0.0}) {
    const std::uint64_t before = state.update;
    state = finish({1}, options, state);
    EXPECT_DOUBLE_EQ(state.learning_rate, lr);
    EXPECT_EQ(state.update, before + 1);
  }
}

TEST(FinishStep, FollowsEveryKindOfSchedule) {
  for (const LrKind kind : kLrKinds) {
    LrSchedule schedule{.kind = kind,
                        .lr = 0.5,
                        .min_lr = 0.01,
                        .warmup_updates = 3,
                        .total_updates = 20,
                        .step_every = 6,
                        .gamma = 0.3,
                        .power = 1.5};
    add_milestone(schedule, 5);
    add_milestone(schedule, 11);
    StepState state = with_items(1);
    for (std::uint64_t update = 0; update < 25; ++update) {
      state = finish({1}, {.schedule = schedule}, state);
      EXPECT_EQ(state.learning_rate, learning_rate(schedule, update)) << name_of(kind);
    }
  }
}

struct Bad {
  std::vector<double> gradient;
  StepState state;
};
std::vector<Bad> nonfinite_steps() {
  std::vector<Bad> steps{{{kNan, 1}, with_items(1)},
                         {{1, -kInfinity}, with_items(1)},
                         {{1, 1}, with_items(1)},
                         {{1, 1}, with_items(1)},
                         {{1e200, 1}, with_items(1)}};
  steps[2].state.loss_sum = kNan;
  steps[3].state.nonfinite = 1;
  return steps;
}

TEST(FinishStep, SkipsOneStepUnderSkip) {
  for (const Bad& bad : nonfinite_steps()) {
    const StepState state = finish(bad.gradient, {.stop_on_nan = false}, bad.state);
    EXPECT_EQ(state.skip, 1);
    EXPECT_EQ(state.update, 0U);
    EXPECT_EQ(state.diverged, 0);
    StepState next = with_items(1);
    next.skip = state.skip;
    EXPECT_EQ(finish({1, 1}, {.stop_on_nan = false}, next).skip, 0);
  }
}

TEST(FinishStep, NeverUpdatesAgainUnderStop) {
  for (const Bad& bad : nonfinite_steps()) {
    StepState state = finish(bad.gradient, {.stop_on_nan = true}, bad.state);
    EXPECT_EQ(state.diverged, 1);
    state.loss_sum = 1;
    state.nonfinite = 0;
    state = finish({1, 1}, {.stop_on_nan = true}, state);
    EXPECT_EQ(state.diverged, 1);
    EXPECT_EQ(state.skip, 1);
    EXPECT_EQ(state.update, 0U);
  }
}

TEST(FinishStep, StepWithoutItemsIsSkippedButNotDiverged) {
  const StepState state = finish({0, 0}, {.nominal = 8}, with_items(0));
  EXPECT_EQ(state.skip, 1);
  EXPECT_EQ(state.diverged, 0);
  EXPECT_EQ(state.gradient_norm, 0);
}

}  // namespace
}  // namespace ddp::test
