#include "core/tensor/bfloat16.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace ddp {
namespace {

TEST(BFloat16, KeepsEveryNumberThatItCanHold) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    BFloat16 x;
    x.bits = static_cast<std::uint16_t>(bits);
    const float wide = static_cast<float>(x);
    if (std::isnan(wide))
      EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(wide)))) << bits;
    else
      EXPECT_EQ(BFloat16(wide).bits, bits);
  }
}

TEST(BFloat16, RoundsToTheNearestAndTiesToEven) {
  const auto rounded = [](double x) { return static_cast<double>(BFloat16(x)); };
  constexpr double kStep = 0x1p-7;  // between neighbours above 1
  EXPECT_EQ(rounded(1 + 0.49 * kStep), 1);
  EXPECT_EQ(rounded(1 + 0.5 * kStep), 1);
  EXPECT_EQ(rounded(1 + 0.51 * kStep), 1 + kStep);
  EXPECT_EQ(rounded(1 + 1.5 * kStep), 1 + 2 * kStep);
  EXPECT_EQ(rounded(-1 - 1.5 * kStep), -1 - 2 * kStep);
  EXPECT_EQ(rounded(std::numeric_limits<float>::max()), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace ddp
