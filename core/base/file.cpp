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

[[noreturn]] void fail(std::string_view action, const fs::path& path, int error) {
  throw StorageError("cannot {} '{}': {}", action, path.string(), storage_reason(error));
}

FileDescriptor open_file(const fs::path& path, int flags, std::string_view action) {
  FileDescriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0666));
  if (file.get() < 0) fail(action, path, errno);
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

int write_parts(int fd, std::span<const std::string_view> parts) noexcept {
  for (const std::string_view part : parts)
    if (const int error = write_all(fd, part)) return error;
  return 0;
}

/// The new name of a file is durable only once its directory is.
void sync_directory_of(const fs::path& path) {
  const fs::path directory = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const FileDescriptor file = open_file(directory, O_RDONLY | O_DIRECTORY, "open the directory");
  // Some network file systems cannot sync a directory and say EINVAL; the content itself is safe by
  // then.
  if (::fsync(file.get()) != 0 && errno != EINVAL) fail("sync the directory", directory, errno);
}

void write_directly(const fs::path& path, std::span<const std::string_view> parts) {
  const FileDescriptor file = open_file(path, O_WRONLY, "write");
  if (const int error = write_parts(file.get(), parts)) fail("write", path, error);
}

}  // namespace

std::string storage_reason(int error) {
  std::string text = std::generic_category().message(error);
  if (error == ENOSPC || error == EDQUOT || error == EFBIG)
    text += "; free some space or choose another place";
  if (error == EACCES || error == EPERM || error == EROFS)
    text += "; choose a place that you may write to";
  return text;
}

std::string read_file(const fs::path& path) {
  const FileDescriptor file = open_file(path, O_RDONLY, "read");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail("read", path, errno);
  std::string content;
  content.reserve(static_cast<std::size_t>(status.st_size));
  std::array<char, 1 << 16> block;
  for (;;) {
    const ssize_t got = ::read(file.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path, errno);
    if (got == 0) return content;
    content.append(block.data(), static_cast<std::size_t>(got));
  }
}

void make_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail("create the directory", path, error.value());
}

void write_file_atomically(const fs::path& path, std::span<const std::string_view> parts) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status))
    return write_directly(path, parts);

  const fs::path temporary = path.string() + ".tmp";
  int error = 0;
  {
    const FileDescriptor file = open_file(temporary, O_WRONLY | O_CREAT | O_TRUNC, "write");
    error = write_parts(file.get(), parts);
    if (error == 0 && ::fsync(file.get()) != 0) error = errno;
  }
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    fail("write", path, error);
  }
  sync_directory_of(path);
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
    : path_(path), file_(open_file(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, "write")) {}

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
