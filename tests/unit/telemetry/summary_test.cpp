#include "core/telemetry/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "tests/support/temporary_directory.h"

namespace ddp {
namespace {

using nlohmann::json;

constexpr ExitCode kAllCodes[] = {ExitCode::kFinished, ExitCode::kInternal,      ExitCode::kUsage,
                                  ExitCode::kData,     ExitCode::kDevice,        ExitCode::kMemory,
                                  ExitCode::kStopped,  ExitCode::kCommunication, ExitCode::kStorage,
                                  ExitCode::kDiverged, ExitCode::kRegression};

TEST(RunSummary, IsOneLineWithTheKeysInTheirOrder) {
  RunSummary summary;
  summary.run_dir = "runs/a";
  summary.steps = 3744;
  summary.epochs = 8;
  summary.final = {.train_loss = 0.25,
                   .val_loss = 0.5,
                   .val_top1 = 0.913,
                   .val_top5 = 0.998,
                   .val_ema_loss = 0.4,
                   .val_ema_top1 = 0.92,
                   .val_ema_top5 = 0.999};
  summary.early_stopped = true;
  summary.skipped_steps = 7;
  summary.best = {.metric = "val_top1",
                  .value = 0.914,
                  .step = 3276,
                  .path = "runs/a/weights/best.safetensors"};
  summary.samples_per_s = 4512.5;
  summary.exposed_comm_ms = 1.25;
  summary.peak_memory = {.allocated_bytes = 1000, .reserved_bytes = 2000};
  EXPECT_EQ(
      summary_json(summary),
      R"({"status":"finished","exit":0,"run_dir":"runs/a","steps":3744,"epochs":8.0,)"
      R"("final":{"train_loss":0.25,"val_loss":0.5,"val_top1":0.913,"val_top5":0.998,)"
      R"("val_ema_loss":0.4,"val_ema_top1":0.92,"val_ema_top5":0.999},)"
      R"("best":{"metric":"val_top1","value":0.914,"step":3276,"path":"runs/a/weights/best.safetensors"},)"
      R"("last_checkpoint":null,"samples_per_s":4512.5,"exposed_comm_ms":1.25,)"
      R"("peak_memory":{"allocated_bytes":1000,"reserved_bytes":2000},"early_stopped":true,"skipped_steps":7})");
}

TEST(RunSummary, UnknownIsNullAndTheKeysStay) {
  RunSummary summary;
  summary.exit = ExitCode::kData;
  EXPECT_EQ(
      summary_json(summary),
      R"({"status":"failed","exit":3,"run_dir":null,"steps":0,"epochs":0.0,)"
      R"("final":{"train_loss":null,"val_loss":null,"val_top1":null,"val_top5":null,)"
      R"("val_ema_loss":null,"val_ema_top1":null,"val_ema_top5":null},)"
      R"("best":{"metric":null,"value":null,"step":null,"path":null},)"
      R"("last_checkpoint":null,"samples_per_s":null,"exposed_comm_ms":null,)"
      R"("peak_memory":{"allocated_bytes":null,"reserved_bytes":null},"early_stopped":false,"skipped_steps":0})");
}

TEST(RunSummary, StatusFollowsFromTheExitCode) {
  for (const ExitCode code : kAllCodes) {
    const std::string_view expected = code == ExitCode::kFinished  ? "finished"
                                      : code == ExitCode::kStopped ? "stopped"
                                                                   : "failed";
    EXPECT_EQ(status_of(code), expected);
  }
}

TEST(RunSummary, StaysValidJsonWhateverItHolds) {
  RunSummary summary;
  summary.run_dir = "line\nbreak \"quote\" \xff";
  summary.final.train_loss = std::numeric_limits<double>::quiet_NaN();
  const std::string text = summary_json(summary);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const json parsed = json::parse(text);
  EXPECT_TRUE(parsed["final"]["train_loss"].is_null());
  EXPECT_THAT(parsed["run_dir"].get<std::string>(), ::testing::StartsWith("line\nbreak \"quote\""));
}

TEST(FailureReport, SaysWhoWhereWhyAndWhatToDo) {
  const TemporaryDirectory directory;
  write_failure_report(directory / "failure.json",
                       {.rank = 3,
                        .host = "node7",
                        .device = "CPU, 2 threads",
                        .step = 12,
                        .phase = "training",
                        .cause = "train-labels: label 11 is outside 0..9",
                        .advice = "fix the file",
                        .exit = ExitCode::kData});
  const auto report = nlohmann::ordered_json::parse(read_file(directory / "failure.json"));
  EXPECT_EQ(
      report.dump(),
      R"({"rank":3,"host":"node7","device":"CPU, 2 threads","step":12,"phase":"training",)"
      R"("cause":"train-labels: label 11 is outside 0..9","advice":"fix the file","exit":3})");
}

TEST(FailureReport, WithoutOwnAdviceItGivesThatOfItsClass) {
  FailureReport report;
  report.exit = ExitCode::kDiverged;
  const json parsed = json::parse(failure_json(report));
  EXPECT_EQ(parsed["advice"], failure_advice(ExitCode::kDiverged));
  EXPECT_TRUE(parsed["step"].is_null());
}

TEST(FailureReport, EveryClassOfFailureHasAdvice) {
  for (const ExitCode code : kAllCodes)
    EXPECT_FALSE(failure_advice(code).empty()) << static_cast<int>(code);
}

}  // namespace
}  // namespace ddp
