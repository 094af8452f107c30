#include "launcher/launcher.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "tests/support/temporary_directory.h"

namespace ddp {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Outcome {
  int exit = 0;
  std::string out, err;
};

/// Runs `ddptrain ARGUMENTS` in this process, as started without mpirun.
Outcome ddptrain(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "ddptrain");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.exit = run_launcher(static_cast<int>(arguments.size()), argv.data());
  std::fflush(stdout);
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  return outcome;
}

TEST(Launcher, WithoutACommandItTrains) {
  const Outcome with = ddptrain({"train", "--print-config", "--micro-batch", "7"});
  const Outcome without = ddptrain({"--print-config", "--micro-batch", "7"});
  EXPECT_EQ(with.exit, 0) << with.err;
  EXPECT_EQ(without.exit, 0) << without.err;
  EXPECT_EQ(without.out, with.out);
  EXPECT_THAT(with.out, HasSubstr("micro_batch: 7"));
}

TEST(Launcher, HelpListsCommandsAndModels) {
  const Outcome help = ddptrain({"--help"});
  EXPECT_EQ(help.exit, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("train"), HasSubstr("eval"), HasSubstr("plan"),
                              HasSubstr("config"), HasSubstr("convnet"), HasSubstr("mlp")));
}

TEST(Launcher, HelpOfACommandListsItsFlags) {
  EXPECT_THAT(ddptrain({"train", "--help"}).out,
              AllOf(HasSubstr("--micro-batch"), HasSubstr("--dry-run"), HasSubstr("--lr")));
  EXPECT_THAT(ddptrain({"eval", "--help"}).out,
              AllOf(HasSubstr("--weights"), HasSubstr("--data"), Not(HasSubstr("--lr"))));
}

TEST(Launcher, SaysItsVersion) {
  const Outcome version = ddptrain({"--version"});
  EXPECT_EQ(version.exit, 0);
  EXPECT_THAT(version.out, HasSubstr("ddptrain 0."));
}

TEST(Launcher, AnUnknownFlagIsAUsageErrorWithTheNearestName) {
  const Outcome outcome = ddptrain({"plan", "--mikro-batch", "7"});
  EXPECT_EQ(outcome.exit, 2);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("--mikro-batch"), HasSubstr("--micro-batch")));
  EXPECT_EQ(outcome.out, "");
}

TEST(Launcher, AnUnknownModelIsAUsageError) {
  const Outcome outcome = ddptrain({"plan", "--model", "convent"});
  EXPECT_EQ(outcome.exit, 2);
  EXPECT_THAT(outcome.err, HasSubstr("convnet"));
}

TEST(Launcher, AFailedTrainingEndsWithItsSummaryToo) {
  const Outcome outcome = ddptrain({"train", "--mikro-batch", "7"});
  EXPECT_EQ(outcome.exit, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--micro-batch"));
  const json summary = json::parse(outcome.out);
  EXPECT_EQ(summary["status"], "failed");
  EXPECT_EQ(summary["exit"], 2);
}

TEST(Launcher, PlanPrintsAndWritesTheSameHashes) {
  const TemporaryDirectory directory;
  const std::string file = (directory / "plan.json").string();
  const Outcome outcome =
      ddptrain({"plan", "--model", "convnet", "--micro-batch", "4", "--json", file});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  const json plan = json::parse(read_file(file));
  EXPECT_EQ(plan["parameters"], 421642);
  EXPECT_EQ(plan["ranks"], 2) << "without mpirun it plans for two ranks";
  EXPECT_THAT(outcome.out, AllOf(HasSubstr(plan["schedule_hash"].get<std::string>()),
                                 HasSubstr(plan["kernel_hash"].get<std::string>())));
}

TEST(Launcher, PlanForOneRankCommunicatesNothing) {
  EXPECT_THAT(ddptrain({"plan", "--model", "mlp", "--ranks", "1"}).out,
              Not(HasSubstr("all_reduce")));
  EXPECT_THAT(ddptrain({"plan", "--model", "mlp", "--ranks", "2"}).out, HasSubstr("all_reduce"));
}

TEST(Launcher, TrainsAndScoresItsWeightsAlike) {
  const TemporaryDirectory directory;
  const std::string run = (directory / "run").string();
  const Outcome trained = ddptrain({"--model", "mlp", "--data", "synthetic", "--global-batch", "16",
                                    "--steps", "4", "--threads", "1", "--out", run});
  ASSERT_EQ(trained.exit, 0) << trained.err;
  const json summary = json::parse(trained.out);
  EXPECT_EQ(summary["status"], "finished");
  EXPECT_EQ(summary["steps"], 4);
  const Outcome scored = ddptrain({"eval", "--data", "synthetic", "--weights",
                                   run + "/weights/final.safetensors", "--threads", "1"});
  ASSERT_EQ(scored.exit, 0) << scored.err;
  const json score = json::parse(scored.out);
  for (const char* figure : {"val_loss", "val_top1", "val_top5"})
    EXPECT_EQ(score["final"][figure], summary["final"][figure]) << figure;
}

}  // namespace
}  // namespace ddp
