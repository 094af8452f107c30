#include "core/data/byte_source.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "core/base/error.h"

namespace ddp {

namespace {
constexpr std::size_t kBufferBytes = 1 << 16;
constexpr int kGzipOnly = 15 + 16;  // zlib's windowBits: largest window, gzip wrapping
}  // namespace

ByteSource::ByteSource(const std::filesystem::path& file, std::int64_t limit)
    : file_(file.string()), buffer_(kBufferBytes), limit_(static_cast<std::uint64_t>(limit)) {
  // Opening a pipe would block until somebody writes to it.
  std::error_code ignored;
  const auto status = std::filesystem::status(file, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw DataError(file_, "is not a regular file; put the data file itself here");
  }
  handle_.reset(std::fopen(file_.c_str(), "rb"));
  if (!handle_) {
    throw DataError(file_, "cannot be opened: {}; check the path and its permissions",
                    std::strerror(errno));
  }
  refill();
  gzip_ = stream_.avail_in >= 2 && buffer_[0] == 0x1f && buffer_[1] == 0x8b;
  if (gzip_ && inflateInit2(&stream_, kGzipOnly) != Z_OK) {
    throw MemoryError("{}: no memory left to unpack it", file_);
  }
}

ByteSource::~ByteSource() {
  if (gzip_) inflateEnd(&stream_);
}

bool ByteSource::refill() {
  const std::size_t count = std::fread(buffer_.data(), 1, buffer_.size(), handle_.get());
  if (std::ferror(handle_.get()) != 0) {
    throw DataError(file_, "reading failed at byte {}: {}; check the disk", consumed_,
                    std::strerror(errno));
  }
  consumed_ += count;
  stream_.next_in = buffer_.data();
  stream_.avail_in = static_cast<uInt>(count);
  return count > 0;
}

std::size_t ByteSource::read(std::span<std::uint8_t> into) {
  const std::size_t count = gzip_ ? unpack(into) : copy(into);
  given_ += count;
  if (given_ > limit_) {
    throw DataError(file_, "holds more than {} bytes{}, and no larger files are read; split it",
                    limit_, gzip_ ? " when it is unpacked" : "");
  }
  return count;
}

std::size_t ByteSource::copy(std::span<std::uint8_t> into) {
  std::size_t done = 0;
  while (done < into.size() && (stream_.avail_in > 0 || refill())) {
    const std::size_t part = std::min<std::size_t>(into.size() - done, stream_.avail_in);
    std::memcpy(into.data() + done, stream_.next_in, part);
    stream_.next_in += part;
    stream_.avail_in -= static_cast<uInt>(part);
    done += part;
  }
  return done;
}

std::size_t ByteSource::unpack(std::span<std::uint8_t> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    if (stream_.avail_in == 0 && !refill()) {
      if (!member_open_) break;
      throw DataError(file_,
                      "ends at byte {} in the middle of its gzip data; copy or download it again",
                      consumed_);
    }
    // What follows a complete member has to be another one: anything else fails its header check.
    if (!member_open_) inflateReset(&stream_);
    member_open_ = true;

    const std::size_t room =
        std::min<std::size_t>(into.size() - done, std::numeric_limits<uInt>::max());
    stream_.next_out = into.data() + done;
    stream_.avail_out = static_cast<uInt>(room);
    const int code = inflate(&stream_, Z_NO_FLUSH);
    done += room - stream_.avail_out;
    if (code == Z_STREAM_END) {
      member_open_ = false;
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      throw DataError(file_, "gzip data is damaged at byte {} ({}); copy or download it again",
                      consumed_ - stream_.avail_in, stream_.msg ? stream_.msg : zError(code));
    }
  }
  return done;
}

bool is_there(const std::filesystem::path& file) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(file, ignored));
}

std::string byte_name(std::int64_t byte, bool gzip) {
  return fmt::format("{}byte {}", gzip ? "unpacked " : "", byte);
}

}  // namespace ddp
