#include "core/telemetry/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "core/base/error.h"
#include "core/base/philox.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/telemetry/metrics_files.h"

namespace ddp {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

StepMetrics example(std::int64_t step) {
  return {.step = step,
          .epoch = 0.1,
          .loss = 2.3,
          .lr = 0.05,
          .grad_norm = 1.5,
          .samples_per_s = 4512,
          .data_ms = 0.25,
          .forward_ms = 8,
          .backward_ms = 17,
          .exposed_comm_ms = 1.125,
          .optimizer_ms = 0.5,
          .val_loss = {},
          .val_top1 = {},
          .val_top5 = {},
          .skipped = false};
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  if (!text.empty() && text.back() == separator && separator == ',') parts.emplace_back();
  return parts;
}
std::vector<std::string> lines(const std::filesystem::path& file) {
  return split(read_file(file), '\n');
}

std::string csv_row(const StepMetrics& metrics) {
  std::string row;
  append_metrics_csv(row, metrics);
  return row;
}
std::string json_row(const StepMetrics& metrics) {
  std::string row;
  append_metrics_json(row, metrics);
  return row;
}

TEST(Metrics, HeaderOpensWithTheColumnsThatScriptsRely) {
  EXPECT_THAT(
      metrics_csv_header(),
      StartsWith("step,epoch,loss,lr,grad_norm,samples_per_s,data_ms,forward_ms,backward_ms,"
                 "exposed_comm_ms,optimizer_ms,val_loss,val_top1,val_top5"));
}

TEST(Metrics, UnknownFiguresAreNullOrEmpty) {
  EXPECT_EQ(csv_row(example(12)), "12,0.1,2.3,0.05,1.5,4512,0.25,8,17,1.125,0.5,,,,0,,,\n");
  EXPECT_EQ(
      json_row(example(12)),
      R"({"step":12,"epoch":0.1,"loss":2.3,"lr":0.05,"grad_norm":1.5,"samples_per_s":4512,)"
      R"("data_ms":0.25,"forward_ms":8,"backward_ms":17,"exposed_comm_ms":1.125,"optimizer_ms":0.5,)"
      R"("val_loss":null,"val_top1":null,"val_top5":null,"skipped":0,)"
      R"("val_ema_loss":null,"val_ema_top1":null,"val_ema_top5":null})"
      "\n");
}

TEST(Metrics, WhatIsNotFiniteIsNullInJsonAndNamedInCsv) {
  StepMetrics metrics = example(1);
  metrics.loss = kNan;
  metrics.grad_norm = std::numeric_limits<double>::infinity();
  metrics.val_loss = kNan;
  metrics.skipped = true;
  EXPECT_EQ(csv_row(metrics), "1,0.1,nan,0.05,inf,4512,0.25,8,17,1.125,0.5,nan,,,1,,,\n");
  const json row = json::parse(json_row(metrics));
  EXPECT_TRUE(row["loss"].is_null());
  EXPECT_TRUE(row["grad_norm"].is_null());
  EXPECT_TRUE(row["val_loss"].is_null());
  EXPECT_EQ(row["skipped"], 1);
}

// Both formats hold the same columns with the same values, to the last bit.
TEST(Metrics, FormatsAgreeAndRoundTrip) {
  const std::vector<std::string> names = split(metrics_csv_header(), ',');
  const PhiloxKey key = philox_key(3, RandomStream::kSynthetic);
  for (std::uint32_t i = 0; i < 200; ++i) {
    StepMetrics metrics = example((std::int64_t{1} << 60) + i);
    const PhiloxBlock bits = philox(key, 0, 0, i);
    metrics.loss = uniform_double(bits[0], bits[1]) * 1e-5;
    metrics.val_top1 = uniform_double(bits[2], bits[3]);
    const std::vector<std::string> cells =
        split(csv_row(metrics).substr(0, csv_row(metrics).size() - 1), ',');
    const json row = json::parse(json_row(metrics));
    ASSERT_EQ(cells.size(), names.size());
    ASSERT_EQ(row.size(), names.size());
    for (std::size_t column = 0; column < names.size(); ++column) {
      const json& value = row.at(names[column]);
      if (value.is_null())
        EXPECT_EQ(cells[column], "");
      else
        EXPECT_EQ(json::parse(cells[column]), value) << names[column];
    }
    EXPECT_EQ(row["step"].get<std::int64_t>(), metrics.step);
    EXPECT_EQ(row["loss"].get<double>(), metrics.loss);
    EXPECT_EQ(row["val_top1"].get<double>(), *metrics.val_top1);
  }
}

TEST(MetricsWriter, WritesOneRowPerStepInBothFiles) {
  const TemporaryDirectory directory;
  MetricsWriter writer(files_in(directory), make_logger(1));
  for (int step = 1; step <= 5; ++step) writer.step(example(step));
  writer.finish();
  writer.finish();
  const auto csv = lines(directory / "m.csv"), jsonl = lines(directory / "m.jsonl");
  ASSERT_EQ(csv.size(), 6U);
  ASSERT_EQ(jsonl.size(), 5U);
  EXPECT_EQ(csv[0], metrics_csv_header());
  for (std::size_t i = 0; i < 5; ++i) {
    const auto step = static_cast<std::int64_t>(i + 1);
    EXPECT_EQ(csv[i + 1] + '\n', csv_row(example(step)));
    EXPECT_EQ(jsonl[i] + '\n', json_row(example(step)));
  }
  EXPECT_FALSE(writer.failed());
}

TEST(MetricsWriter, EvaluationStandsInTheRowOfTheStepItFollows) {
  const TemporaryDirectory directory;
  {
    MetricsWriter writer(files_in(directory), make_logger(1));
    writer.evaluation({.loss = 9, .top1 = 0.1, .top5 = 0.5});
    writer.step(example(1));
    writer.step(example(2));
    writer.evaluation({.loss = 0.5, .top1 = 0.875, .top5 = 1});
    writer.average_evaluation({.loss = 0.25, .top1 = 0.9, .top5 = 1});
    writer.step(example(3));
  }  // the destructor writes the last row
  const auto rows = lines(directory / "m.jsonl");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_TRUE(json::parse(rows[0])["val_top1"].is_null());
  EXPECT_EQ(json::parse(rows[1])["step"], 2);
  EXPECT_EQ(json::parse(rows[1])["val_loss"], 0.5);
  EXPECT_EQ(json::parse(rows[1])["val_top1"], 0.875);
  EXPECT_EQ(json::parse(rows[1])["val_top5"], 1);
  EXPECT_EQ(json::parse(rows[1])["val_ema_loss"], 0.25);
  EXPECT_EQ(json::parse(rows[1])["val_ema_top1"], 0.9);
  EXPECT_TRUE(json::parse(rows[2])["val_top1"].is_null());
}

TEST(MetricsWriter, ACrashLosesOnlyTheRowHeld) {
  const TemporaryDirectory directory;
  MetricsWriter writer(files_in(directory), make_logger(1));
  for (int step = 1; step <= 3; ++step) writer.step(example(step));
  EXPECT_EQ(lines(directory / "m.jsonl").size(), 2U);
  EXPECT_EQ(lines(directory / "m.csv").size(), 3U);
}

TEST(MetricsWriter, FullDiskIsOneWarningAndWholeRows) {
  const TemporaryDirectory directory;
  CaptureStderr();
  {
    MetricsWriter writer(files_in(directory), make_logger(0));
    const FileSizeLimit full(1000);
    for (int step = 1; step <= 100; ++step) writer.step(example(step));
    writer.finish();
    EXPECT_TRUE(writer.failed());
  }
  const std::string said = GetCapturedStderr();
  EXPECT_THAT(said, StartsWith("warning: no more metrics are written, training goes on"));
  EXPECT_THAT(said, HasSubstr((directory / "m.jsonl").string()));
  EXPECT_EQ(split(said, '\n').size(), 1U);
  const auto rows = lines(directory / "m.jsonl");
  EXPECT_GE(rows.size(), 2U);
  for (const std::string& row : rows) EXPECT_TRUE(json::accept(row)) << row;
  EXPECT_EQ(read_file(directory / "m.csv").back(), '\n');
}

TEST(MetricsWriter, FullDeviceFromTheStartIsSaidOnce) {
  const TemporaryDirectory directory;
  CaptureStderr();
  MetricsFiles files = files_in(directory);
  files.csv = "/dev/full";
  MetricsWriter writer(files, make_logger(0));
  writer.step(example(1));
  writer.finish();
  EXPECT_TRUE(writer.failed());
  const std::string said = GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("'/dev/full': No space left on device"));
  EXPECT_EQ(split(said, '\n').size(), 1U);
}

TEST(MetricsWriter, FilesThatCannotBeCreatedAreAStorageError) {
  const TemporaryDirectory directory;
  MetricsFiles files = files_in(directory);
  files.jsonl = directory / "no/m.jsonl";
  EXPECT_THROW(MetricsWriter(files, make_logger(1)), StorageError);
}

}  // namespace
}  // namespace ddp
