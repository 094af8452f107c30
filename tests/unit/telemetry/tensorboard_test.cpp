#include "core/telemetry/tensorboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <sstream>
#include <vector>

#include "core/base/crc32c.h"
#include "core/base/file.h"
#include "core/telemetry/metrics.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/telemetry/metrics_files.h"

namespace ddp {
namespace {

using tensorboard::Event;

template <class T>
T take(std::string_view& rest) {
  T value{};
  std::memcpy(&value, rest.data(), sizeof(value));
  rest.remove_prefix(sizeof(value));
  return value;
}

std::uint32_t unmask(std::uint32_t masked) {
  const std::uint32_t rotated = masked - 0xa282ead8U;
  return (rotated << 15) | (rotated >> 17);
}

/// Reads whole records and checks both checksums of each.
std::vector<Event> events_in(std::string_view rest) {
  std::vector<Event> events;
  while (!rest.empty()) {
    const std::string_view length_bytes = rest.substr(0, 8);
    const auto length = static_cast<std::size_t>(take<std::uint64_t>(rest));
    EXPECT_EQ(unmask(take<std::uint32_t>(rest)), crc32c(length_bytes));
    const std::string_view data = rest.substr(0, length);
    rest.remove_prefix(length);
    EXPECT_EQ(unmask(take<std::uint32_t>(rest)), crc32c(data));
    EXPECT_TRUE(events.emplace_back().ParseFromString(std::string(data)));
  }
  return events;
}

std::map<std::string, float> scalars(const Event& event) {
  std::map<std::string, float> values;
  for (const auto& value : event.summary().value()) {
    EXPECT_TRUE(value.has_simple_value()) << value.tag();
    EXPECT_TRUE(values.emplace(value.tag(), value.simple_value()).second) << value.tag();
  }
  return values;
}

TEST(EventFile, OpensWithTheBytesThatTensorBoardExpects) {
  // As TensorBoard's own writer lays it out: tag 1 (double), tag 3 (text of 13 bytes).
  const std::string record = event_file_opening(1.5);
  ASSERT_EQ(record.size(), 8 + 4 + 24 + 4U);
  EXPECT_EQ(record.substr(0, 8), std::string("\x18\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(12, 24),
            std::string("\x09\0\0\0\0\0\0\xf8\x3f\x1a\x0d", 11) + "brain.Event:2");
  EXPECT_EQ(events_in(record).front().file_version(), "brain.Event:2");
}

TEST(MetricsEvent, HoldsAScalarForEachColumnThatIsKnown) {
  const StepMetrics metrics{.step = 12,
                            .loss = 0.1,
                            .backward_ms = 17.5,
                            .val_loss = {},
                            .val_top1 = 0.875,
                            .val_top5 = {},
                            .skipped = true};
  Event event;
  set_metrics_event(event, metrics);
  EXPECT_EQ(event.step(), 12);
  const auto values = scalars(event);
  EXPECT_EQ(values.at("train/loss"), 0.1F);
  EXPECT_EQ(values.at("time/backward_ms"), 17.5F);
  EXPECT_EQ(values.at("val/top1"), 0.875F);
  EXPECT_EQ(values.at("train/skipped"), 1);
  EXPECT_EQ(values.at("train/lr"), 0) << "zero is a figure like any other";
  EXPECT_FALSE(values.contains("val/loss"));

  std::string row;
  append_metrics_csv(row, metrics);
  std::istringstream cells(row.substr(0, row.size() - 1));
  std::size_t known = 0;
  for (std::string cell; std::getline(cells, cell, ',');) known += cell.empty() ? 0U : 1U;
  EXPECT_EQ(values.size(), known - 1) << "all columns of the CSV but the step";
}

TEST(MetricsEvent, KeepsWhatIsNotFinite) {
  Event event;
  set_metrics_event(event, {.loss = std::numeric_limits<double>::quiet_NaN(),
                            .grad_norm = std::numeric_limits<double>::infinity(),
                            .val_loss = {},
                            .val_top1 = {},
                            .val_top5 = {}});
  EXPECT_TRUE(std::isnan(scalars(event).at("train/loss")));
  EXPECT_TRUE(std::isinf(scalars(event).at("train/grad_norm")));
}

TEST(MetricsEvent, OfAnEarlierStepLeavesNothingBehind) {
  Event event;
  set_metrics_event(event, {.step = 1, .val_loss = 1, .val_top1 = 1, .val_top5 = 1});
  const StepMetrics next{.step = 2, .val_loss = {}, .val_top1 = {}, .val_top5 = {}};
  set_metrics_event(event, next);
  Event fresh;
  set_metrics_event(fresh, next);
  EXPECT_EQ(event.SerializeAsString(), fresh.SerializeAsString());
}

TEST(MetricsWriter, WritesOneEventPerStepBehindTheVersion) {
  const TemporaryDirectory directory;
  {
    MetricsWriter writer(files_in(directory), make_logger(1));
    for (int step = 1; step <= 3; ++step) {
      writer.step({.step = step, .val_loss = {}, .val_top1 = {}, .val_top5 = {}});
      if (step == 2) writer.evaluation({.loss = 0.5, .top1 = 0.25, .top5 = 0.75});
    }
  }
  const std::vector<Event> events = events_in(read_file(directory / "m.ev"));
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  for (std::size_t i = 1; i < events.size(); ++i) {
    EXPECT_EQ(events[i].step(), static_cast<std::int64_t>(i));
    EXPECT_GE(events[i].wall_time(), events[i - 1].wall_time());
    EXPECT_EQ(scalars(events[i]).contains("val/top1"), i == 2);
  }
  EXPECT_EQ(scalars(events[2]).at("val/top5"), 0.75F);
}

TEST(MetricsWriter, FullDiskLeavesWholeEvents) {
  const TemporaryDirectory directory;
  testing::internal::CaptureStderr();
  {
    MetricsWriter writer(files_in(directory), make_logger(0));
    const FileSizeLimit full(2000);  // events are larger than rows and meet it first
    for (int step = 1; step <= 100; ++step)
      writer.step({.step = step, .val_loss = {}, .val_top1 = {}, .val_top5 = {}});
    writer.finish();
    EXPECT_TRUE(writer.failed());
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr((directory / "m.ev").string()));
  EXPECT_GE(events_in(read_file(directory / "m.ev")).size(), 2U);
}

}  // namespace
}  // namespace ddp
