#include "core/config/interval.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/config_testing.h"

namespace ddp {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::int64_t kStepsPerEpoch = 468;
constexpr std::int64_t kRunSteps = 3744;

Interval interval(std::string_view text) {
  return over_run(parse_interval(text, "--eval-every"), kStepsPerEpoch, kRunSteps);
}

TEST(Interval, CountsStepsEpochsFractionsAndTime) {
  EXPECT_EQ(interval("500"), Interval{.steps = 500});
  EXPECT_EQ(interval("1ep"), Interval{.steps = kStepsPerEpoch});
  EXPECT_EQ(interval("0.5ep"), Interval{.steps = kStepsPerEpoch / 2});
  EXPECT_EQ(interval("0.25"), Interval{.steps = kRunSteps / 4});
  EXPECT_EQ(interval("1.0"), Interval{.steps = kRunSteps});
  EXPECT_EQ(interval("90s"), Interval{.seconds = 90});
  EXPECT_EQ(interval("15m"), Interval{.seconds = 900});
  EXPECT_EQ(interval("1.5h"), Interval{.seconds = 5400});
}

TEST(Interval, OfZeroOrOffIsNever) {
  for (const char* text : {"0", "off", "0.0", "0ep", "0s"}) EXPECT_TRUE(interval(text).never());
  EXPECT_FALSE(interval("1").never());
}

TEST(Interval, ThatIsNotZeroIsAtLeastOneStep) {
  EXPECT_EQ(interval("0.0000001"), Interval{.steps = 1});
  EXPECT_EQ(interval("0.0001ep"), Interval{.steps = 1});
}

TEST(Interval, SaysWhatItCanBeWhenItIsNone) {
  for (const char* text : {"", "x", "-5", "-0", "1e3", "5 m", "5d", "ep", "5eps", "nan", "inf",
                           "+5", "0x10", "99999999999999999999"}) {
    EXPECT_THAT(config_error([&] { interval(text); }),
                AllOf(StartsWith("--eval-every: \""), HasSubstr("steps (500), epochs (1ep)")))
        << text;
  }
}

TEST(Interval, OfAFormThatAFlagRefusesIsNeitherTakenNorOffered) {
  const auto error = [](std::string_view text, const IntervalForms& forms) {
    return config_error([&] { parse_interval(text, "--warmup", forms); });
  };
  const IntervalForms no_time{.time = false}, no_never{.time = false, .never = false};
  EXPECT_THAT(error("15m", no_time), StartsWith("--warmup: 15m is a time, which"));
  EXPECT_THAT(error("x", no_time), AllOf(Not(HasSubstr("15m")), HasSubstr("or off")));
  for (const char* text : {"off", "0", "0ep"})
    EXPECT_THAT(error(text, no_never), HasSubstr("means never"));
  EXPECT_THAT(error("x", no_never), AllOf(Not(HasSubstr("15m")), Not(HasSubstr("off"))));
  EXPECT_EQ(parse_interval("off", "--warmup", no_time).amount, 0);
}

TEST(Intervals, AreDifferentAndHaveNoEmptyPart) {
  EXPECT_EQ(parse_intervals("3,1ep,0.5", "--milestones").size(), 3U);
  const auto error = [](std::string_view text) {
    return config_error([&] { parse_intervals(text, "--milestones"); });
  };
  for (const char* text : {"3,", "3,,5"})
    EXPECT_THAT(error(text), HasSubstr("has a comma with nothing behind it")) << text;
  EXPECT_THAT(error(",3"), HasSubstr("has a comma with nothing before it"));
  EXPECT_THAT(error("0.5,0.5"), HasSubstr("holds 0.5 twice"));
}

TEST(Interval, WithADotCannotBeMoreThanTheRun) {
  EXPECT_THAT(config_error([] { interval("2.5"); }),
              HasSubstr("--eval-every: 2.5 is a fraction of the run"));
}

TEST(Duration, IsSecondsMinutesOrHours) {
  EXPECT_EQ(parse_duration("90s", "--max-time"), 90);
  EXPECT_EQ(parse_duration("15m", "--max-time"), 900);
  EXPECT_EQ(parse_duration("2h", "--max-time"), 7200);
  EXPECT_EQ(parse_duration("0.5s", "--max-time"), 0.5);
}

TEST(Duration, SaysWhatItCanBeWhenItIsNone) {
  for (const char* text : {"", "90", "0s", "-1s", "1ep", "m", "1h30m", "off", "nans"})
    EXPECT_THAT(config_error([&] { parse_duration(text, "--max-time"); }),
                AllOf(StartsWith("--max-time: \""), HasSubstr("seconds (90s)")))
        << text;
}

}  // namespace
}  // namespace ddp
