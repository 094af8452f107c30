#include "core/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "core/base/error.h"

namespace ddp {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(std::string_view action, const fs::path& path, int error,
                       FileUse use = FileUse::kWrite) {
  throw StorageError("cannot {} '{}': {}", action, path.string(), storage_reason(error, use));
}

int open_descriptor(const fs::path& path, int flags) {
  return ::open(path.c_str(), flags | O_CLOEXEC, 0666);
}

FileDescriptor open_to_read(const fs::path& path, int flags = 0) {
  FileDescriptor file(open_descriptor(path, O_RDONLY | flags));
  if (file.get() < 0) fail("read", path, errno, FileUse::kRead);
  return file;
}

/// Returns 0 or an errno.
int write_all(int fd, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

/// The new name of a file is durable only once its directory is.
void sync_directory_of(const fs::path& path) {
  const fs::path directory = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const FileDescriptor file = open_to_read(directory, O_DIRECTORY);
  // Some network file systems cannot sync a directory and say EINVAL; the content itself is safe by
  // then.
  if (::fsync(file.get()) != 0 && errno != EINVAL) fail("sync the directory", directory, errno);
}

bool is_special(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

}  // namespace

std::string storage_reason(int error, FileUse use) {
  std::string text = std::generic_category().message(error);
  const bool denied = error == EACCES || error == EPERM || error == EROFS;
  const bool missing = error == ENOENT || error == ENOTDIR;
  if (use == FileUse::kRead) {
    if (denied) return text + "; give yourself permission to read it";
    if (missing) return text + "; check the path";
    return error == EISDIR ? text + "; name a file in it" : text;
  }
  if (error == ENOSPC || error == EDQUOT || error == EFBIG)
    return text + "; free some space or choose another place";
  if (denied || missing) return text + "; choose a directory that exists and that you may write to";
  return error == EISDIR ? text + "; name a file in it" : text;
}

std::string read_file(const fs::path& path) {
  const FileDescriptor file = open_to_read(path);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail("read", path, errno, FileUse::kRead);
  std::string content;
  content.reserve(static_cast<std::size_t>(status.st_size));
  std::array<char, 1 << 16> block;
  for (;;) {
    const ssize_t got = ::read(file.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path, errno, FileUse::kRead);
    if (got == 0) return content;
    content.append(block.data(), static_cast<std::size_t>(got));
  }
}

void make_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail("create the directory", path, error.value());
}

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)) {
  std::error_code ignored;
  // Otherwise noticed only when the finished file takes the name.
  if (fs::is_directory(path_, ignored)) fail("write", path_, EISDIR);
  if (!is_special(path_)) temporary_ = path_.string() + ".tmp";
  const bool direct = temporary_.empty();
  file_ = FileDescriptor(open_descriptor(direct ? path_ : temporary_,
                                         direct ? O_WRONLY : O_WRONLY | O_CREAT | O_TRUNC));
  if (file_.get() < 0) fail("write", path_, errno);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty() && file_.get() >= 0) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::string_view piece) {
  if (const int error = write_all(file_.get(), piece)) fail("write", path_, error);
}

void AtomicFile::commit() {
  if (!temporary_.empty()) {
    if (::fsync(file_.get()) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0)
      fail("write", path_, errno);
  }
  file_ = FileDescriptor();
  if (!temporary_.empty()) sync_directory_of(path_);
}

void write_file_atomically(const fs::path& path, std::span<const std::string_view> parts) {
  AtomicFile file(path);
  for (const std::string_view part : parts) file.write(part);
  file.commit();
}

void write_file_atomically(const fs::path& path, std::string_view content) {
  write_file_atomically(path, std::span(&content, 1));
}

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

AppendFile::AppendFile(const fs::path& path)
    : path_(path), file_(open_descriptor(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND)) {
  if (file_.get() < 0) fail("write", path_, errno);
}

int AppendFile::append(std::string_view record) noexcept {
  if (const int error = write_all(file_.get(), record)) {
    // Takes back the part that went through. A device like /dev/full has nothing to take back, and
    // nothing more can be done about any other failure here.
    [[maybe_unused]] const int ignored = ::ftruncate(file_.get(), static_cast<off_t>(size_));
    return error;
  }
  size_ += record.size();
  return 0;
}

}  // namespace ddp
