#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "tests/support/temporary_directory.h"

namespace ddp {
namespace {

using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

TEST(Log, RankZeroSpeaksToPeopleOnStderr) {
  const Logger logger = make_logger(0);
  CaptureStderr();
  logger->debug("detail");
  logger->info("training {} samples", 60000);
  logger->warn("slow disk");
  logger->error("rank 3 failed");
  EXPECT_EQ(GetCapturedStderr(),
            "training 60000 samples\nwarning: slow disk\nerror: rank 3 failed\n");
}

TEST(Log, OtherRanksAreSilentOnStderr) {
  const Logger logger = make_logger(1);
  CaptureStderr();
  logger->error("hello");
  EXPECT_EQ(GetCapturedStderr(), "");
}

TEST(Log, EveryRankHasAFileWithEachRecordAtOnce) {
  const TemporaryDirectory directory;
  const Logger logger = make_logger(3);
  add_log_file(*logger, directory / "logs/rank-003.log");
  logger->debug("detail {}", 1);
  EXPECT_THAT(read_file(directory / "logs/rank-003.log"), HasSubstr(" debug: detail 1\n"));
  logger->error("gone");
  EXPECT_THAT(read_file(directory / "logs/rank-003.log"), HasSubstr(" error: gone\n"));
}

TEST(Log, FileIsAppendedTo) {
  const TemporaryDirectory directory;
  write_file_atomically(directory / "log", "before\n");
  const Logger logger = make_logger(1);
  add_log_file(*logger, directory / "log");
  logger->info("after");
  EXPECT_THAT(read_file(directory / "log"), ::testing::MatchesRegex("before\n.* info: after\n"));
}

TEST(Log, UnusableFileIsAStorageError) {
  const TemporaryDirectory directory;
  const Logger logger = make_logger(1);
  EXPECT_THROW(add_log_file(*logger, directory.path()), StorageError);
}

TEST(Log, FullDiskIsSaidOnceByRankZeroAndNeverThrown) {
  for (const int rank : {0, 1}) {
    const Logger logger = make_logger(rank);
    logger->sinks().clear();
    add_log_file(*logger, "/dev/full");
    CaptureStderr();
    for (int i = 0; i < 3; ++i) logger->info("record");
    const std::string said = GetCapturedStderr();
    if (rank == 0)
      EXPECT_THAT(said, ::testing::MatchesRegex("warning: the log is incomplete: [^\n]*\n"));
    else
      EXPECT_EQ(said, "");
  }
}

}  // namespace
}  // namespace ddp
