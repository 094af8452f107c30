// ByteSource: the bytes of a file from start to end, unpacked when the file is gzip. It holds a
// fixed input buffer and never reads further than it was asked to, so a damaged or hostile file
// costs no memory. The readers of idx and CIFAR files pull from it.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ddp {

/// Samples are held in memory; the largest set of this kind in use (8 million MNIST digits) has 6.4
/// GB.
inline constexpr std::int64_t kMaxDataFileBytes = std::int64_t{8} << 30;

class ByteSource {
 public:
  /// Opens a regular file. Gzip is told by the first two bytes, not by the name. DataError with the
  /// system's reason. More than `limit` bytes, unpacked, are not given out.
  explicit ByteSource(const std::filesystem::path& file, std::int64_t limit = kMaxDataFileBytes);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  /// Fills `into`; returns the bytes written, fewer than asked for only at the end of the data.
  /// Gzip checksums are verified when the end is reached. DataError names the byte of the file
  /// where gzip data is damaged or ends too early, and the limit when there are more bytes than it.
  std::size_t read(std::span<std::uint8_t> into);

  const std::string& file() const { return file_; }
  bool is_gzip() const { return gzip_; }

 private:
  bool refill();
  std::size_t copy(std::span<std::uint8_t> into);
  std::size_t unpack(std::span<std::uint8_t> into);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string file_;
  std::unique_ptr<std::FILE, Close> handle_;
  std::vector<std::uint8_t> buffer_;
  std::uint64_t limit_, given_ = 0;
  std::uint64_t consumed_ = 0;  ///< bytes taken from the file, those still in the buffer included
  /// next_in and avail_in are the unread part of the buffer, for plain files too.
  z_stream stream_{};
  bool gzip_ = false;
  bool member_open_ = true;  ///< inside a gzip member: the file must not end here
};

/// Whether there is a file of that name. A dangling link counts, so that opening it says what is
/// wrong.
bool is_there(const std::filesystem::path& file);

/// "byte 17" or, of a gzip file, "unpacked byte 17": for messages.
std::string byte_name(std::int64_t byte, bool gzip);

}  // namespace ddp
