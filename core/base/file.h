// Files as the program needs them: read whole, written so that a reader sees the old content or the
// new one and never a part of it, or appended record by record. Every failure is a StorageError
// (exit 7) that names the file and the system's reason, except where a caller has to go on without
// the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace ddp {

/// All bytes of a file.
std::string read_file(const std::filesystem::path& path);

/// Makes the directory and its parents; an existing one is fine.
void make_directories(const std::filesystem::path& path);

/// Owner of an open file; move-only.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

/// A file that is written piece by piece and is there whole or not at all: the pieces go to
/// "<path>.tmp", which reaches the disk (fsync) and takes the name in commit(). Until then, and
/// when anything fails, the old content stays; a temporary file without commit() is removed. A
/// target that is no regular file (/dev/stdout) is written directly.
class AtomicFile {
 public:
  /// Opens the file for writing; StorageError when it cannot be.
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view piece);
  /// Nothing may be written after it.
  void commit();

 private:
  std::filesystem::path path_, temporary_;  ///< the latter is empty when written directly
  FileDescriptor file_;
};

/// Replaces `path` by the concatenated parts, as AtomicFile does.
void write_file_atomically(const std::filesystem::path& path,
                           std::span<const std::string_view> parts);
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// A new file that grows by whole records. Each record is handed to the system at once, so that a
/// crash of the process loses none.
class AppendFile {
 public:
  /// Creates or empties the file.
  explicit AppendFile(const std::filesystem::path& path);

  /// Appends `record` whole or not at all. Returns 0, or the errno of the failure, after which the
  /// file still ends with the last whole record. Allocates nothing.
  int append(std::string_view record) noexcept;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
  std::size_t size_ = 0;
};

/// What was to be done with a file when it failed.
enum class FileUse : std::uint8_t { kRead, kWrite };

/// "No space left on device; free some space or choose another place": an errno with what to do
/// about it.
std::string storage_reason(int error, FileUse use = FileUse::kWrite);

}  // namespace ddp
