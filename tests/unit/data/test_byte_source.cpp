#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/data/byte_source.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/idx_files.h"

namespace ddp {
namespace {

TEST(ByteSource, GivesOutNoMoreThanItsLimit) {
  const TemporaryDirectory directory;
  const Bytes content(1000, 3);
  write_bytes(directory / "plain", content);
  write_bytes(directory / "packed", gzip(content));
  for (const char* name : {"plain", "packed"}) {
    Bytes read(2000);
    ByteSource whole(directory / name, 1000);
    EXPECT_EQ(whole.read(read), 1000U) << name;
    EXPECT_THAT(data_error([&] { ByteSource(directory / name, 999).read(read); }),
                testing::HasSubstr("holds more than 999 bytes"))
        << name;
  }
}

}  // namespace
}  // namespace ddp
