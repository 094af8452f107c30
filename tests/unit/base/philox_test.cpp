#include "core/base/philox.h"

#include <cmath>
#include <cstdint>
#include <set>

#include <gtest/gtest.h>

namespace ddp {
namespace {

constexpr std::uint32_t kOnes = 0xffffffffU;

// Known answers published with the authors' library (Random123, philox4x32-10).
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox({0, 0}, PhiloxBlock{0, 0, 0, 0}),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({kOnes, kOnes}, PhiloxBlock{kOnes, kOnes, kOnes, kOnes}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Philox, EachPartOfTheCounterChangesTheNumbers) {
  const PhiloxKey key = philox_key(1, RandomStream::kDropout);
  const std::uint64_t high = std::uint64_t{1} << 32;
  const std::set<PhiloxBlock> blocks{philox(key, 0, 0, 0),      philox(key, 1, 0, 0),
                                     philox(key, 0, 1, 0),      philox(key, 0, 0, 1),
                                     philox(key, high, 0, 0),   philox(key, 0, high, 0),
                                     philox(key, high, high, 0)};
  EXPECT_EQ(blocks.size(), 7U);
}

TEST(Philox, SeedsStreamsAndInstancesHaveDifferentKeys) {
  std::set<std::uint64_t> keys;
  std::size_t made = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (const RandomStream stream :
         {RandomStream::kInit, RandomStream::kShuffle, RandomStream::kAugment,
          RandomStream::kDropout, RandomStream::kSynthetic})
      for (std::uint64_t instance = 0; instance < 20; ++instance, ++made) {
        const PhiloxKey key = philox_key(seed, stream, instance);
        keys.insert(std::uint64_t{key.high} << 32 | key.low);
      }
  EXPECT_EQ(keys.size(), made);
}

TEST(Uniform, ReachesBothEndsOfItsRange) {
  EXPECT_EQ(uniform_float(0), 0.0F);
  EXPECT_EQ(uniform_float(kOnes), std::nextafter(1.0F, 0.0F));
  EXPECT_EQ(uniform_double(0, 0), 0.0);
  EXPECT_EQ(uniform_double(kOnes, kOnes), std::nextafter(1.0, 0.0));
  for (const std::uint32_t n : {1U, 2U, 5U, 1000U}) {
    EXPECT_EQ(uniform_below(0, n), 0U);
    EXPECT_EQ(uniform_below(kOnes, n), n - 1);
  }
}

}  // namespace
}  // namespace ddp
