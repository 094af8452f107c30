#include "core/telemetry/hints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace ddp {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kTotal = 600, kWarmup = 50;

struct Given {
  std::int64_t step = 0;  ///< of the first hint; 0: none was given
  std::string hint;
};

/// The first hint of a run of `kTotal` steps over 10 classes.
Given first_hint(const std::function<double(std::int64_t step)>& loss) {
  LossTrend trend;
  for (std::int64_t step = 1; step <= kTotal; ++step) {
    trend.add(loss(step));
    const auto hint = loss_hint({.step = step,
                                 .warmup_steps = kWarmup,
                                 .total_steps = kTotal,
                                 .lr = 0.1,
                                 .start = trend.start(),
                                 .recent = trend.recent(),
                                 .classes = 10});
    if (hint) return {.step = step, .hint = *hint};
  }
  return {};
}

TEST(LossHint, ARunThatLearnsGetsNone) {
  const double chance = std::log(10);
  for (const double time : {20.0, 100.0, 500.0})
    EXPECT_EQ(first_hint([&](auto step) {
                return chance * std::exp(-static_cast<double>(step) / time);
              }).step,
              0)
        << "falls over " << time << " steps";
  // From far above, as with a large initial loss; and from below, as when fine-tuned.
  EXPECT_EQ(first_hint([&](auto step) { return 1e4 / static_cast<double>(step); }).step, 0);
  EXPECT_EQ(first_hint([](auto) { return 0.01; }).step, 0);
  // Noise of single steps is not a trend.
  EXPECT_EQ(first_hint([](auto step) { return step % 10 == 0 ? 5.0 : 0.5; }).step, 0);
}

TEST(LossHint, GuessingIsSaidAHundredStepsAfterWarmup) {
  for (const double factor : {0.99, 1.0, 1.2}) {
    const Given given = first_hint([&](auto) { return factor * std::log(10); });
    EXPECT_EQ(given.step, kWarmup + 100);
    EXPECT_THAT(given.hint, HasSubstr("no better than guessing one of 10 classes (2.3026)"));
    EXPECT_THAT(given.hint, HasSubstr("--lr"));
  }
}

TEST(LossHint, ARisingLossIsSaidWhereverItStarts) {
  for (const double start : {0.1, 1.0, 2.3}) {
    const Given given =
        first_hint([&](auto step) { return start * (1 + static_cast<double>(step) / 100); });
    EXPECT_EQ(given.step, kWarmup + 100);
    EXPECT_THAT(given.hint, HasSubstr("has risen from"));
  }
}

TEST(LossHint, ALearningRateOfZeroIsNamed) {
  const auto hint = loss_hint({.step = 200,
                               .warmup_steps = 0,
                               .total_steps = 600,
                               .lr = 0,
                               .start = 2.3,
                               .recent = 2.3,
                               .classes = 10});
  ASSERT_TRUE(hint);
  EXPECT_THAT(*hint, HasSubstr("--lr is 0"));
  EXPECT_THAT(*hint, testing::Not(HasSubstr("ten times lower")));
}

TEST(LossHint, ALongRunIsGivenATenthOfItsSteps) {
  const auto hint_at = [](std::int64_t step) {
    return loss_hint({.step = step,
                      .warmup_steps = 1000,
                      .total_steps = 51'000,
                      .start = 2.3,
                      .recent = 2.3,
                      .classes = 10});
  };
  EXPECT_FALSE(hint_at(5999));
  EXPECT_TRUE(hint_at(6000));
}

TEST(LossHint, StepsThatAreNotFiniteAreLeftOut) {
  LossTrend trend;
  EXPECT_TRUE(std::isnan(trend.start()));
  trend.add(2);
  trend.add(std::numeric_limits<double>::quiet_NaN());
  trend.add(std::numeric_limits<double>::infinity());
  trend.add(4);
  EXPECT_EQ(trend.start(), 3);
  EXPECT_EQ(trend.recent(), 3);
}

std::vector<std::int64_t> counts(std::int64_t a, std::int64_t b, std::int64_t c) {
  return {a, b, c};
}

TEST(OneClassHint, NamesTheClassThatIsAlwaysPredicted) {
  const auto hint = one_class_hint(counts(400, 300, 300), counts(3, 995, 2));
  ASSERT_TRUE(hint);
  EXPECT_THAT(*hint, HasSubstr("predicts class 1 for 99.5 % of the samples"));
  EXPECT_THAT(*hint, HasSubstr("labels are of 3 classes"));
}

TEST(OneClassHint, IsNotGivenWhereThePredictionsHaveReason) {
  EXPECT_FALSE(one_class_hint(counts(400, 300, 300), counts(10, 980, 10)));
  EXPECT_FALSE(one_class_hint(counts(5, 995, 0), counts(0, 1000, 0))) << "so are the labels";
  EXPECT_FALSE(one_class_hint(counts(2, 2, 2), counts(6, 0, 0))) << "too few samples";
  EXPECT_FALSE(one_class_hint(counts(9, 9, 9), counts(0, 0, 0))) << "no sample has a prediction";
}

TEST(DivergenceAdvice, OfTheFirstStepIsAboutTheInput) {
  EXPECT_THAT(divergence_advice(1), HasSubstr("normalisation"));
  EXPECT_THAT(divergence_advice(1), HasSubstr("data check"));
  EXPECT_THAT(divergence_advice(2), HasSubstr("lower --lr"));
}

}  // namespace
}  // namespace ddp
