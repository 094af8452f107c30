#include "core/ops/optimizer/lr_schedule.h"

#include <gtest/gtest.h>

namespace ddp {
namespace {

constexpr LrKind kKinds[] = {LrKind::kConstant, LrKind::kLinear, LrKind::kCosine};

LrSchedule schedule(LrKind kind, std::uint64_t warmup = 10, std::uint64_t total = 110) {
  return {
      .kind = kind, .lr = 0.5, .min_lr = 0.02, .warmup_updates = warmup, .total_updates = total};
}

TEST(LrSchedule, WarmUpIsAStraightLineToThePeak) {
  for (const LrKind kind : kKinds)
    for (std::uint64_t update = 0; update < 10; ++update)
      EXPECT_DOUBLE_EQ(learning_rate(schedule(kind), update),
                       0.5 * static_cast<double>(update + 1) / 10);
}

TEST(LrSchedule, StartsAtThePeakAndEndsAtTheMinimum) {
  for (const LrKind kind : kKinds) {
    const double last = kind == LrKind::kConstant ? 0.5 : 0.02;
    EXPECT_DOUBLE_EQ(learning_rate(schedule(kind), 10), 0.5);
    EXPECT_DOUBLE_EQ(learning_rate(schedule(kind), 110), last);
    EXPECT_DOUBLE_EQ(learning_rate(schedule(kind), 100000), last);
    EXPECT_DOUBLE_EQ(learning_rate(schedule(kind, 0), 0), 0.5);
  }
}

TEST(LrSchedule, NeverRisesAfterWarmUp) {
  for (const LrKind kind : kKinds)
    for (std::uint64_t update = 10; update < 120; ++update)
      EXPECT_LE(learning_rate(schedule(kind), update + 1), learning_rate(schedule(kind), update));
}

TEST(LrSchedule, IsHalfWayDownInTheMiddle) {
  for (const LrKind kind : {LrKind::kLinear, LrKind::kCosine})
    EXPECT_NEAR(learning_rate(schedule(kind), 60), (0.5 + 0.02) / 2, 1e-15);
  EXPECT_NEAR(learning_rate(schedule(LrKind::kLinear), 35), 0.02 + 0.48 * 0.75, 1e-15);
  EXPECT_NEAR(learning_rate(schedule(LrKind::kCosine), 35), 0.02 + 0.48 * (1 + std::sqrt(0.5)) / 2,
              1e-15);
}

TEST(LrSchedule, WarmUpMayFillOrExceedTheRun) {
  EXPECT_DOUBLE_EQ(learning_rate(schedule(LrKind::kCosine, 10, 10), 9), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(schedule(LrKind::kCosine, 10, 10), 10), 0.02);
  EXPECT_DOUBLE_EQ(learning_rate(schedule(LrKind::kLinear, 10, 5), 7), 0.4);
}

TEST(LrSchedule, NamesReadBack) {
  for (const LrKind kind : kKinds) EXPECT_EQ(lr_kind(name_of(kind)), kind);
  EXPECT_THROW(lr_kind("step"), ConfigError);
}

}  // namespace
}  // namespace ddp
