#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

#include "core/base/hash.h"

namespace ddp {
namespace {

// The hashes of no bytes that the XXH3 specification gives.
TEST(Hash, IsXxh3) {
  EXPECT_EQ(hash64_hex(""), "2d06800538d394c2");
  EXPECT_EQ(hash128_hex(""), "99aa06d3014798d86001c324468d497f");
}

TEST(Hash, EveryBitCounts) {
  for (const std::size_t size : {1U, 16U, 200U, 5000U}) {
    const std::string text(size, 'a');
    std::set<std::string> short_hashes{hash64_hex(text)}, long_hashes{hash128_hex(text)};
    for (std::size_t bit = 0; bit < 8 * size; ++bit) {
      std::string other = text;
      other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << (bit % 8)));
      short_hashes.insert(hash64_hex(other));
      long_hashes.insert(hash128_hex(other));
    }
    EXPECT_EQ(short_hashes.size(), 8 * size + 1);
    EXPECT_EQ(long_hashes.size(), 8 * size + 1);
  }
}

TEST(Hash, DoesNotDependOnAlignment) {
  std::array<std::byte, 1040> buffer{};
  std::set<std::string> hashes;
  for (std::size_t offset = 0; offset < 16; ++offset)
    hashes.insert(hash64_hex(std::span(buffer).subspan(offset, 1024)));
  EXPECT_EQ(hashes.size(), 1U);
}

}  // namespace
}  // namespace ddp
