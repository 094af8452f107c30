#include "tests/unit/data/idx_files.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>

#include "core/base/error.h"

namespace ddp {

Bytes idx_header(std::initializer_list<std::uint32_t> extents) {
  Bytes bytes{0, 0, 8, static_cast<std::uint8_t>(extents.size())};
  for (const std::uint32_t extent : extents) {
    for (const int shift : {24, 16, 8, 0}) {
      bytes.push_back(static_cast<std::uint8_t>(extent >> shift));
    }
  }
  return bytes;
}

Bytes idx_images(std::uint32_t count, std::uint32_t height, std::uint32_t width) {
  Bytes bytes = idx_header({count, height, width});
  for (std::uint32_t i = 0; i < count * height * width; ++i) {
    bytes.push_back(static_cast<std::uint8_t>((i * 2654435761U) >> 24));
  }
  return bytes;
}

Bytes idx_labels(const std::vector<int>& labels) {
  Bytes bytes = idx_header({static_cast<std::uint32_t>(labels.size())});
  for (const int label : labels) bytes.push_back(static_cast<std::uint8_t>(label));
  return bytes;
}

Bytes gzip(const Bytes& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY),
            Z_OK);
  Bytes packed(deflateBound(&stream, bytes.size()));
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void write_bytes(const std::filesystem::path& file, const Bytes& bytes) {
  // Emptying an existing file makes some file systems write it out at once, which takes far longer.
  std::filesystem::remove(file);
  std::ofstream stream(file, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(stream.flush()) << file;
}

std::string data_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kData) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

}  // namespace ddp
