#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <fstream>

#include "core/base/error.h"
#include "core/base/file.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_directory.h"

namespace ddp {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// The sentence of the StorageError that `action` throws.
template <class Action>
std::string storage_error(Action action) {
  try {
    action();
  } catch (const StorageError& error) {
    EXPECT_EQ(error.code(), ExitCode::kStorage);
    return error.what();
  }
  ADD_FAILURE() << "no StorageError";
  return "";
}

std::size_t entries(const fs::path& directory) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

TEST(File, ReadsBackEveryByteItWrote) {
  const TemporaryDirectory directory;
  std::string bytes(200'003, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31);
  write_file_atomically(directory / "file", bytes);
  EXPECT_EQ(read_file(directory / "file"), bytes);
}

TEST(File, ConcatenatesParts) {
  const TemporaryDirectory directory;
  const std::array<std::string_view, 3> parts{"one ", "", "two"};
  write_file_atomically(directory / "file", parts);
  EXPECT_EQ(read_file(directory / "file"), "one two");
}

TEST(File, AtomicWriteReplacesAndLeavesNothingElse) {
  const TemporaryDirectory directory;
  write_file_atomically(directory / "file", "a long first version");
  write_file_atomically(directory / "file", "second");
  EXPECT_EQ(read_file(directory / "file"), "second");
  EXPECT_EQ(entries(directory.path()), 1U);
}

TEST(File, FailedAtomicWriteKeepsTheOldContent) {
  const TemporaryDirectory directory;
  write_file_atomically(directory / "file", "old");
  std::string sentence;
  {
    const FileSizeLimit full(4096);
    sentence =
        storage_error([&] { write_file_atomically(directory / "file", std::string(10'000, 'x')); });
  }
  EXPECT_THAT(sentence, AllOf(HasSubstr((directory / "file").string()), HasSubstr("File too large"),
                              HasSubstr("free some space")));
  EXPECT_EQ(read_file(directory / "file"), "old");
  EXPECT_EQ(entries(directory.path()), 1U);
}

TEST(File, AtomicFileIsThereWholeOrNotAtAll) {
  const TemporaryDirectory directory;
  write_file_atomically(directory / "file", "old");
  {
    AtomicFile file(directory / "file");
    file.write("one ");
    file.write("two");
    EXPECT_EQ(read_file(directory / "file"), "old");
    file.commit();
  }
  EXPECT_EQ(read_file(directory / "file"), "one two");
  { AtomicFile(directory / "file").write("given up"); }
  EXPECT_EQ(read_file(directory / "file"), "one two");
  EXPECT_EQ(entries(directory.path()), 1U);
}

TEST(File, APlaceThatTakesNoFileIsKnownBeforeItIsWritten) {
  const TemporaryDirectory directory;
  const fs::path file = directory / "none" / "x.csv";
  const std::string sentence = storage_error([&] { const AtomicFile nowhere(file); });
  EXPECT_THAT(sentence, AllOf(HasSubstr("cannot write '" + file.string() + "': "),
                              HasSubstr("choose a directory that exists")));
  EXPECT_THAT(storage_error([&] { const AtomicFile no_file(directory.path()); }),
              HasSubstr("Is a directory"));
}

TEST(File, AdviceIsForWhatWasToBeDone) {
  EXPECT_THAT(storage_reason(EACCES, FileUse::kRead), HasSubstr("permission to read"));
  EXPECT_THAT(storage_reason(ENOENT, FileUse::kRead), HasSubstr("check the path"));
  EXPECT_THAT(storage_reason(EACCES, FileUse::kWrite), HasSubstr("you may write to"));
  EXPECT_THAT(storage_reason(ENOENT, FileUse::kWrite), HasSubstr("a directory that exists"));
}

TEST(File, WritesToADeviceWithoutReplacingIt) {
  const TemporaryDirectory directory;
  fs::create_symlink("/dev/null", directory / "null");
  write_file_atomically(directory / "null", "text");
  EXPECT_TRUE(fs::is_character_file(fs::status(directory / "null")));
  EXPECT_EQ(entries(directory.path()), 1U);
}

TEST(File, FullDiskIsNamedWithAdvice) {
  EXPECT_THAT(
      storage_error([] { write_file_atomically("/dev/full", "text"); }),
      AllOf(HasSubstr("'/dev/full'"), HasSubstr("No space left"), HasSubstr("free some space")));
}

TEST(File, MissingDirectoryIsNamed) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "missing" / "file";
  EXPECT_THAT(storage_error([&] { write_file_atomically(path, "text"); }),
              AllOf(HasSubstr(path.string()), HasSubstr("No such file or directory")));
  EXPECT_THAT(storage_error([&] { read_file(path); }),
              AllOf(HasSubstr("cannot read"), HasSubstr(path.string())));
}

TEST(File, DirectoryIsNoFile) {
  const TemporaryDirectory directory;
  EXPECT_THAT(storage_error([&] { read_file(directory.path()); }), HasSubstr("Is a directory"));
  EXPECT_THAT(storage_error([&] { write_file_atomically(directory.path(), "text"); }),
              HasSubstr("Is a directory"));
  EXPECT_FALSE(fs::exists(directory.path().string() + ".tmp"));
}

TEST(File, DirectoriesAreMadeWithTheirParents) {
  const TemporaryDirectory directory;
  make_directories(directory / "a" / "b");
  make_directories(directory / "a" / "b");
  EXPECT_TRUE(fs::is_directory(directory / "a" / "b"));
  write_file_atomically(directory / "file", "");
  EXPECT_THAT(storage_error([&] { make_directories(directory / "file" / "b"); }),
              HasSubstr("Not a directory"));
}

TEST(AppendFile, StartsEmptyAndGrowsByRecords) {
  const TemporaryDirectory directory;
  write_file_atomically(directory / "file", "from before");
  AppendFile file(directory / "file");
  EXPECT_EQ(file.append("one\n"), 0);
  EXPECT_EQ(read_file(directory / "file"), "one\n");
  EXPECT_EQ(file.append("two\n"), 0);
  EXPECT_EQ(read_file(directory / "file"), "one\ntwo\n");
}

TEST(AppendFile, NeverKeepsAPartOfARecord) {
  const TemporaryDirectory directory;
  AppendFile file(directory / "file");
  const std::string record(1000, 'r');
  ASSERT_EQ(file.append(record), 0);
  {
    const FileSizeLimit full(1500);
    EXPECT_EQ(file.append(record), EFBIG);
  }
  EXPECT_EQ(read_file(directory / "file"), record);
  EXPECT_EQ(file.append("more"), 0);
  EXPECT_EQ(read_file(directory / "file"), record + "more");
}

TEST(AppendFile, ReportsAFullDisk) { EXPECT_EQ(AppendFile("/dev/full").append("record"), ENOSPC); }

}  // namespace
}  // namespace ddp
