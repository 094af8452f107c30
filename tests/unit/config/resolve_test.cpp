#include "core/config/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/config_testing.h"

namespace ddp {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr RunFacts kFacts{.ranks = 2, .train_samples = 1000};

ResolvedConfig run_of(const std::vector<std::string>& arguments, const RunFacts& facts = kFacts) {
  return resolve(from_flags(arguments), facts);
}

std::string run_error(const std::vector<std::string>& arguments, const RunFacts& facts = kFacts) {
  return config_error([&] { run_of(arguments, facts); });
}

TEST(Resolve, OfTheDefaultsIsEightEpochsOfSgd) {
  const ResolvedConfig run = run_of({}, {.ranks = 2, .train_samples = 60000});
  EXPECT_EQ(run.batch, (BatchSizes{128, 64, 1}));
  EXPECT_EQ(run.steps_per_epoch, 468);
  EXPECT_EQ(run.total_steps, 8 * 468);
  EXPECT_EQ(run.warmup_steps, 187);  // 0.05 of the run: 187.2
  EXPECT_EQ(run.eval_every, Interval{.steps = 468});
  EXPECT_EQ(run.log_every, Interval{.steps = 100});
  EXPECT_EQ(run.stop_at_step, 0);
  EXPECT_EQ(run.max_seconds, 0);
  EXPECT_EQ(run.configuration.values.lr(), 0.1);
}

TEST(Resolve, FillsInWhatFollowsAndSaysSo) {
  const Configuration filled = run_of({"--global-batch", "100"}).configuration;
  EXPECT_EQ(filled.values.micro_batch(), 50);
  EXPECT_EQ(filled.values.accum(), 1);
  EXPECT_EQ(filled.values.epochs(), 8);
  for (const int field : {TrainConfig::kMicroBatchFieldNumber, TrainConfig::kAccumFieldNumber,
                          TrainConfig::kLrFieldNumber, TrainConfig::kEpochsFieldNumber})
    EXPECT_EQ(origin_of(filled, config_field(field)), "derived");
  EXPECT_EQ(origin_of(filled, config_field(TrainConfig::kGlobalBatchFieldNumber)), "flag");
}

TEST(Resolve, IsIdempotent) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {},
           {"--steps", "7"},
           {"--epochs", "1.5", "--micro-batch", "20", "--optimizer", "adamw"}}) {
    const ResolvedConfig once = run_of(arguments);
    const ResolvedConfig twice = resolve(once.configuration, kFacts);
    EXPECT_EQ(once.configuration.values.DebugString(), twice.configuration.values.DebugString());
    EXPECT_EQ(once.configuration.origins, twice.configuration.origins);
    EXPECT_EQ(once.batch, twice.batch);
    EXPECT_EQ(once.total_steps, twice.total_steps);
  }
}

TEST(Resolve, ChoosesTheLearningRateByOptimizer) {
  EXPECT_EQ(run_of({"--optimizer", "adamw"}).configuration.values.lr(), 0.001);
  EXPECT_EQ(run_of({"--optimizer", "adamw", "--lr", "0"}).configuration.values.lr(), 0);
  EXPECT_EQ(run_of({"--optimizer", "lars"}).configuration.values.lr(), 3);
  EXPECT_EQ(run_of({"--optimizer", "lion"}).configuration.values.lr(), 0.0003);
}

TEST(Resolve, ChoosesTheSecondBetaByOptimizer) {
  EXPECT_EQ(run_of({"--optimizer", "adamw"}).configuration.values.beta2(), 0.999);
  EXPECT_EQ(run_of({"--optimizer", "lion"}).configuration.values.beta2(), 0.99);
  EXPECT_EQ(run_of({"--optimizer", "lion", "--beta2", "0.5"}).configuration.values.beta2(), 0.5);
}

TEST(Resolve, CountsStepsOfAnEpochByLastBatch) {
  EXPECT_EQ(run_of({}).steps_per_epoch, 7);  // 1000 / 128
  EXPECT_EQ(run_of({"--last-batch", "partial"}).steps_per_epoch, 8);
  EXPECT_EQ(run_of({"--global-batch", "100", "--last-batch", "partial"}).steps_per_epoch, 10);
  EXPECT_EQ(run_of({"--last-batch", "partial"}, {.ranks = 2, .train_samples = 1}).total_steps, 8);
}

TEST(Resolve, TakesTheLengthFromEpochsOrSteps) {
  EXPECT_EQ(run_of({"--epochs", "1.5", "--global-batch", "100"}).total_steps, 15);
  EXPECT_EQ(run_of({"--steps", "33"}).total_steps, 33);
  EXPECT_FALSE(run_of({"--steps", "33"}).configuration.values.has_epochs());
  EXPECT_EQ(run_error({"--steps", "33", "--epochs", "2"}),
            "--epochs 2 and --steps 33 both set the length of the run; give one of them");
}

TEST(Resolve, OfARunWithoutStepsSaysWhy) {
  EXPECT_THAT(run_error({"--global-batch", "1002"}),
              AllOf(HasSubstr("--global-batch 1002 is larger than the 1000 training samples"),
                    HasSubstr("--last-batch partial")));
  EXPECT_THAT(run_error({"--epochs", "0.01"}), HasSubstr("--epochs 0.01 of 7 steps"));
  EXPECT_THAT(run_error({}, {.ranks = 2, .train_samples = 0}), HasSubstr("no training samples"));
}

TEST(Resolve, ReadsWarmupAsStepsEpochsOrFraction) {
  const auto warmup = [](const char* text) {
    return run_of({"--global-batch", "100", "--warmup", text}).warmup_steps;
  };
  EXPECT_EQ(warmup("30"), 30);
  EXPECT_EQ(warmup("1ep"), 10);
  EXPECT_EQ(warmup("0.5"), 40);
  EXPECT_EQ(warmup("1.0"), 80);
  EXPECT_EQ(warmup("0.001"), 0);
  EXPECT_EQ(warmup("off"), 0);
  EXPECT_EQ(warmup("0"), 0);
  EXPECT_THAT(run_error({"--warmup", "15m"}), StartsWith("--warmup: 15m is a time"));
  EXPECT_THAT(run_error({"--warmup", "11", "--steps", "10"}),
              StartsWith("--warmup: a warm-up of 11 steps is longer than the run of 10 steps"));
}

TEST(Resolve, GivesOneCycleALongerRise) {
  EXPECT_EQ(run_of({"--steps", "100"}).warmup_steps, 5);
  EXPECT_EQ(run_of({"--steps", "100", "--schedule", "one-cycle"}).warmup_steps, 30);
  EXPECT_EQ(run_of({"--steps", "100", "--schedule", "one-cycle", "--warmup", "0.1"}).warmup_steps,
            10);
}

TEST(Resolve, CountsTheDropsOfAScheduleInSteps) {
  const auto step_every = [](const char* text) {
    return run_of({"--steps", "100", "--schedule", "step", "--step-every", text}).step_every;
  };
  EXPECT_EQ(step_every("0.25"), 25);
  EXPECT_EQ(step_every("2ep"), 14);
  EXPECT_EQ(step_every("7"), 7);
  const auto milestones = [](const char* text) {
    return run_of({"--steps", "100", "--schedule", "multistep", "--milestones", text}).milestones;
  };
  EXPECT_THAT(milestones("1ep,0.5,60"), testing::ElementsAre(7, 50, 60));
  EXPECT_THAT(milestones("0.5"), testing::ElementsAre(50));
  EXPECT_THAT(run_of({"--milestones", "3,2"}).milestones, testing::IsEmpty()) << "cosine has none";
}

TEST(Resolve, RefusesDropsThatCannotBe) {
  const auto step_error = [](const char* text) {
    return run_error({"--steps", "100", "--schedule", "step", "--step-every", text});
  };
  EXPECT_THAT(step_error("15m"), StartsWith("--step-every: 15m is a time"));
  EXPECT_THAT(step_error("off"), StartsWith("--step-every: off means never"));
  EXPECT_THAT(step_error("101"), StartsWith("--step-every: 101 never lowers"));
  const auto milestones_error = [](const std::string& text) {
    return run_error({"--steps", "100", "--schedule", "multistep", "--milestones", text});
  };
  EXPECT_THAT(milestones_error("10,15m"), StartsWith("--milestones: 15m is a time"));
  EXPECT_THAT(milestones_error("60,0.5"),
              StartsWith("--milestones: \"60,0.5\" does not ascend: 0.5"));
  EXPECT_THAT(milestones_error("10,200"), StartsWith("--milestones: 200 never lowers"));
  EXPECT_THAT(milestones_error("10,,20"), HasSubstr("a comma with nothing behind it"));
  std::string many = "1";
  for (int step = 2; step <= 17; ++step) many += fmt::format(",{}", step);
  EXPECT_THAT(milestones_error(many), StartsWith("--milestones: 17 milestones; at most 16"));
}

TEST(Resolve, RefusesToStopEarlyWithoutEvaluations) {
  EXPECT_EQ(run_error({"--early-stop", "2", "--eval-every", "off"}),
            "--early-stop 2 needs evaluations, and --eval-every \"off\" has none before the end");
}

TEST(Resolve, ReadsIntervalsAndLimits) {
  const ResolvedConfig run = run_of(
      {"--eval-every", "15m", "--log-every", "off", "--max-time", "2h", "--stop-at-step", "5"});
  EXPECT_EQ(run.eval_every, Interval{.seconds = 900});
  EXPECT_TRUE(run.log_every.never());
  EXPECT_EQ(run.max_seconds, 7200);
  EXPECT_EQ(run.stop_at_step, 5);
  EXPECT_EQ(run.total_steps, 56);  // the schedule keeps its length
  EXPECT_EQ(run_of({"--eval-every", "0.25"}).eval_every, Interval{.steps = 14});
}

TEST(Resolve, RefusesValuesThatDoNotFitTogether) {
  EXPECT_EQ(run_error({"--min-lr", "0.2"}),
            "--min-lr 0.2 is above the peak, lr 0.1 (derived); lower it");
  EXPECT_EQ(run_of({"--min-lr", "0.1"}).configuration.values.min_lr(), 0.1);
}

}  // namespace
}  // namespace ddp
