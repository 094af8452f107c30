#include "core/telemetry/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

#include "core/base/error.h"
#include "core/base/file.h"
#include "tests/support/temporary_directory.h"

namespace ddp {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Every file and directory below `root`, relative to it.
std::set<std::string> tree(const fs::path& root) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    names.insert(fs::relative(entry.path(), root).string());
  return names;
}

const std::set<std::string> kEmptyRun{"logs", "weights"};

RunDirectory create(const fs::path& out, bool overwrite = false) {
  return create_run_directory(
      {.out = out.string(), .model = "mlp", .overwrite = overwrite, .now = 0});
}

/// A run that wrote every file it can.
RunDirectory complete_run(const fs::path& out) {
  const RunDirectory run = create(out);
  for (const fs::path& file :
       {run.config(), run.environment(), run.metrics_jsonl(), run.metrics_csv(),
        run.events(1'764'537'600, "node3.cluster"), run.failure(), run.log(0), run.log(1234),
        run.final_weights(), run.best_weights()})
    write_file_atomically(file, "from the earlier run");
  return run;
}

std::string config_error(const fs::path& out, bool overwrite) {
  try {
    create(out, overwrite);
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "created";
}

TEST(RunDirectory, NamesItsFiles) {
  const RunDirectory run{"r"};
  EXPECT_EQ(run.config(), "r/config.pbtxt");
  EXPECT_EQ(run.environment(), "r/environment.json");
  EXPECT_EQ(run.metrics_jsonl(), "r/metrics.jsonl");
  EXPECT_EQ(run.metrics_csv(), "r/metrics.csv");
  EXPECT_EQ(run.events(1'764'537'600, "node3"), "r/events.out.tfevents.1764537600.node3");
  EXPECT_EQ(run.failure(), "r/failure.json");
  EXPECT_EQ(run.log(3), "r/logs/rank-003.log");
  EXPECT_EQ(run.log(1024), "r/logs/rank-1024.log");
  EXPECT_EQ(run.final_weights(), "r/weights/final.safetensors");
  EXPECT_EQ(run.best_weights(), "r/weights/best.safetensors");
}

TEST(RunDirectory, IsMadeWithItsParents) {
  const TemporaryDirectory directory;
  EXPECT_EQ(create(directory / "a/b").root, directory / "a/b");
  EXPECT_EQ(tree(directory / "a/b"), kEmptyRun);
}

TEST(RunDirectory, TakesAnEmptyDirectory) {
  const TemporaryDirectory directory;
  create(directory.path());
  EXPECT_EQ(tree(directory.path()), kEmptyRun);
  // A start that wrote nothing yet leaves only empty directories, and the next start may use them.
  EXPECT_EQ(config_error(directory.path(), false), "created");
}

TEST(RunDirectory, RefusesARunUnlessTold) {
  const TemporaryDirectory directory;
  const RunDirectory run = complete_run(directory / "run");
  const std::set<std::string> before = tree(run.root);
  EXPECT_THAT(config_error(run.root, false),
              AllOf(HasSubstr(run.root.string()), HasSubstr("--overwrite")));
  EXPECT_EQ(tree(run.root), before);
}

TEST(RunDirectory, RefusesAnInterruptedRunToo) {
  const TemporaryDirectory directory;
  const RunDirectory run = create(directory / "run");
  write_file_atomically(run.log(0), "killed before the configuration was written");
  EXPECT_THAT(config_error(run.root, false), HasSubstr("--overwrite"));
  EXPECT_EQ(config_error(run.root, true), "created");
  EXPECT_EQ(tree(run.root), kEmptyRun);
}

TEST(RunDirectory, OverwriteRemovesTheWholeRun) {
  const TemporaryDirectory directory;
  const RunDirectory run = complete_run(directory / "run");
  write_file_atomically(run.final_weights().string() + ".tmp", "an interrupted write");
  create(run.root, /*overwrite=*/true);
  EXPECT_EQ(tree(run.root), kEmptyRun);
}

TEST(RunDirectory, OverwriteKeepsForeignFiles) {
  const TemporaryDirectory directory;
  const RunDirectory run = complete_run(directory / "run");
  std::set<std::string> expected = kEmptyRun;
  for (const char* name :
       {"notes.txt", "config.pbtxt.bak", "tfevents.txt", "rank-000.log", "logs/rank-x.log",
        "logs/rank-.log", "logs/config.pbtxt", "weights/mine.safetensors"}) {
    write_file_atomically(run.root / name, "foreign");
    expected.insert(name);
  }
  fs::create_directory(run.root / "plots");
  write_file_atomically(run.root / "plots/metrics.csv", "foreign");
  expected.insert({"plots", "plots/metrics.csv"});
  create(run.root, /*overwrite=*/true);
  EXPECT_EQ(tree(run.root), expected);
}

TEST(RunDirectory, OverwriteNeverTouchesADirectoryThatIsNoRun) {
  const TemporaryDirectory directory;
  fs::create_directories(directory / "home/logs");
  write_file_atomically(directory / "home/thesis.txt", "years of work");
  write_file_atomically(directory / "home/metrics.csv", "of another program");
  write_file_atomically(directory / "home/logs/rank-000.log", "of another program");
  const std::set<std::string> before = tree(directory / "home");
  for (const bool overwrite : {false, true})
    EXPECT_THAT(config_error(directory / "home", overwrite),
                AllOf(HasSubstr("no run"), HasSubstr("new or empty directory")));
  EXPECT_EQ(tree(directory / "home"), before);
}

TEST(RunDirectory, AFileIsNoDirectory) {
  const TemporaryDirectory directory;
  write_file_atomically(directory / "file", "text");
  EXPECT_THAT(config_error(directory / "file", true), HasSubstr("is a file"));
}

TEST(RunDirectory, PathThatCannotBeMadeIsAStorageError) {
  const TemporaryDirectory directory;
  write_file_atomically(directory / "file", "text");
  try {
    create(directory / "file/run");
    FAIL();
  } catch (const StorageError& error) {
    EXPECT_EQ(error.code(), ExitCode::kStorage);
    EXPECT_THAT(error.what(), HasSubstr((directory / "file/run").string()));
  }
}

TEST(RunDirectory, DefaultNameSaysModelAndTime) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  EXPECT_EQ(default_run_name("convnet", 1'000'000'000), "convnet-20010909-014640");
  EXPECT_EQ(default_run_name("../models/wide.pbtxt", 1'000'000'000), "wide-20010909-014640");
}

TEST(RunDirectory, DefaultsStartedTogetherDoNotMeet) {
  const TemporaryDirectory directory;
  const fs::path before = fs::current_path();
  fs::current_path(directory.path());
  std::set<fs::path> roots;
  for (int i = 0; i < 3; ++i)
    roots.insert(
        create_run_directory({.out = "", .model = "mlp", .overwrite = false, .now = 7}).root);
  fs::current_path(before);
  EXPECT_EQ(roots.size(), 3U);
  for (const fs::path& root : roots) EXPECT_EQ(tree(directory.path() / root), kEmptyRun);
}

}  // namespace
}  // namespace ddp
