#include "core/base/crc32c.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace ddp {
namespace {

// The examples of RFC 3720, appendix B.4, and the check value of the CRC catalogues.
TEST(Crc32c, HasThePublishedValues) {
  std::string ascending(32, '\0'), descending(32, '\0');
  std::iota(ascending.begin(), ascending.end(), '\0');
  std::iota(descending.rbegin(), descending.rend(), '\0');
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(crc32c(ascending), 0x46dd794eU);
  EXPECT_EQ(crc32c(descending), 0x113fdb5cU);
}

TEST(Crc32c, SeesEveryBit) {
  std::string data = "events.out.tfevents";
  const std::uint32_t whole = crc32c(data);
  for (char& c : data)
    for (int bit = 0; bit < 8; ++bit) {
      c = static_cast<char>(c ^ (1 << bit));
      EXPECT_NE(crc32c(data), whole);
      c = static_cast<char>(c ^ (1 << bit));
    }
}

}  // namespace
}  // namespace ddp
