#include "core/ops/optimizer/lr_schedule.h"

#include <gtest/gtest.h>

namespace ddp {
namespace {

constexpr double kPeak = 0.5, kLeast = 0.02;

LrSchedule schedule(LrKind kind, std::uint64_t warmup = 10, std::uint64_t total = 110) {
  LrSchedule s{.kind = kind,
               .lr = kPeak,
               .min_lr = kLeast,
               .warmup_updates = warmup,
               .total_updates = total,
               .step_every = 20,
               .gamma = 0.1,
               .power = 2};
  add_milestone(s, 30);
  add_milestone(s, 50);
  add_milestone(s, 50);
  return s;
}

TEST(LrSchedule, WarmUpIsAStraightLineToThePeak) {
  for (const LrKind kind : kLrKinds)
    for (std::uint64_t update = 0; kind != LrKind::kOneCycle && update < 10; ++update)
      EXPECT_DOUBLE_EQ(learning_rate(schedule(kind), update),
                       kPeak * static_cast<double>(update + 1) / 10);
}

TEST(LrSchedule, OfOneCycleRisesAlongACosine) {
  const LrSchedule s = schedule(LrKind::kOneCycle);
  const double start = kPeak / 25;
  EXPECT_DOUBLE_EQ(learning_rate(s, 0), start);
  EXPECT_DOUBLE_EQ(learning_rate(s, 5), (start + kPeak) / 2);
  EXPECT_DOUBLE_EQ(learning_rate(s, 10), kPeak);
  for (std::uint64_t update = 0; update < 10; ++update)
    EXPECT_LT(learning_rate(s, update), learning_rate(s, update + 1));
}

TEST(LrSchedule, StartsAtThePeakAndEndsAtTheMinimum) {
  for (const LrKind kind : kLrKinds) {
    const double last = kind == LrKind::kConstant ? kPeak : kLeast;
    EXPECT_DOUBLE_EQ(learning_rate(schedule(kind), 10), kPeak) << name_of(kind);
    EXPECT_DOUBLE_EQ(learning_rate(schedule(kind), 110), last) << name_of(kind);
    EXPECT_DOUBLE_EQ(learning_rate(schedule(kind), 100000), last) << name_of(kind);
    EXPECT_DOUBLE_EQ(learning_rate(schedule(kind, 0), 0), kPeak) << name_of(kind);
  }
}

TEST(LrSchedule, NeverRisesAfterWarmUp) {
  for (const LrKind kind : kLrKinds)
    for (std::uint64_t update = 10; update < 120; ++update)
      EXPECT_LE(learning_rate(schedule(kind), update + 1), learning_rate(schedule(kind), update))
          << name_of(kind);
}

TEST(LrSchedule, FallsAsItsShapeSays) {
  const auto at = [](LrKind kind, std::uint64_t update) {
    return (learning_rate(schedule(kind), update) - kLeast) / (kPeak - kLeast);
  };
  for (const LrKind kind : {LrKind::kLinear, LrKind::kCosine, LrKind::kOneCycle})
    EXPECT_NEAR(at(kind, 60), 0.5, 1e-15);
  EXPECT_NEAR(at(LrKind::kLinear, 35), 0.75, 1e-15);
  for (const LrKind kind : {LrKind::kCosine, LrKind::kOneCycle})
    EXPECT_NEAR(at(kind, 35), (1 + std::sqrt(0.5)) / 2, 1e-15);
  EXPECT_NEAR(at(LrKind::kPolynomial, 60), 0.25, 1e-15);
  EXPECT_NEAR(at(LrKind::kPolynomial, 35), 0.5625, 1e-15);
}

TEST(LrSchedule, DropsByGammaAndNotBelowTheMinimum) {
  LrSchedule s = schedule(LrKind::kStep);
  for (const auto& [update, lr] :
       {std::pair{19, kPeak}, {20, kPeak * 0.1}, {39, kPeak * 0.1}, {40, kLeast}})
    EXPECT_DOUBLE_EQ(learning_rate(s, static_cast<std::uint64_t>(update)), lr) << update;
  s = schedule(LrKind::kMultistep);
  s.min_lr = 0;
  // Two milestones at one update are two drops.
  for (const auto& [update, lr] :
       {std::pair{29, kPeak}, {30, kPeak * 0.1}, {49, kPeak * 0.1}, {50, kPeak * 0.001}})
    EXPECT_DOUBLE_EQ(learning_rate(s, static_cast<std::uint64_t>(update)), lr) << update;
}

TEST(LrSchedule, WarmUpMayFillOrExceedTheRun) {
  EXPECT_DOUBLE_EQ(learning_rate(schedule(LrKind::kCosine, 10, 10), 9), kPeak);
  EXPECT_DOUBLE_EQ(learning_rate(schedule(LrKind::kCosine, 10, 10), 10), kLeast);
  EXPECT_DOUBLE_EQ(learning_rate(schedule(LrKind::kLinear, 10, 5), 7), 0.4);
}

TEST(LrSchedule, NamesReadBack) {
  for (const LrKind kind : kLrKinds) EXPECT_EQ(lr_kind(name_of(kind)), kind);
  EXPECT_THROW(lr_kind("exponential"), ConfigError);
}

TEST(LrSchedule, RefusesMoreMilestonesThanItHolds) {
  LrSchedule s;
  for (std::size_t i = 0; i < kMaxMilestones; ++i) add_milestone(s, i);
  EXPECT_THROW(add_milestone(s, 100), ConfigError);
}

}  // namespace
}  // namespace ddp
