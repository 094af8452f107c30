#include "core/backend/cpu/reduce.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace ddp::cpu {
namespace {

TEST(Sum, TakesEachTermOnceForAnyLength) {
  for (std::int64_t n = 0; n <= 100; ++n)
    EXPECT_EQ(sum(n, [](std::int64_t j) { return static_cast<double>(j + 1); }),
              static_cast<double>(n * (n + 1) / 2))
        << n;
}

TEST(Sum, OfFloatsIsTakenInDouble) {
  EXPECT_EQ(sum(50, [](std::int64_t j) { return j == 0 ? 1e8F : 1.0F; }), 1e8 + 49);
}

TEST(Largest, FindsTheMaximumWhereverItStands) {
  for (const std::int64_t n : {1, 31, 32, 33, 100})
    for (std::int64_t place = 0; place < n; ++place) {
      std::vector<float> x(static_cast<std::size_t>(n), -3);
      x[static_cast<std::size_t>(place)] = -2;
      EXPECT_EQ(largest(x.data(), n), -2) << place << " of " << n;
    }
}

TEST(Largest, OfMinusInfinityIsMinusInfinity) {
  const std::vector<double> x(40, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(largest(x.data(), 40), x[0]);
}

}  // namespace
}  // namespace ddp::cpu
