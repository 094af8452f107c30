#include "core/backend/cpu/exp.h"

#include <cmath>

#include <gtest/gtest.h>

namespace ddp::cpu {
namespace {

template <class T>
class ExpOf : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(ExpOf, Types);

TYPED_TEST(ExpOf, IsWithinTwoUnitsOfTheLastPlaceOverTheWholeRange) {
  using T = TypeParam;
  constexpr T kLow = std::numeric_limits<T>::min_exponent * T(0.693);
  constexpr T kHigh = std::numeric_limits<T>::max_exponent * T(0.693);
  constexpr int kSteps = 100000;
  for (int i = 0; i <= kSteps; ++i) {
    const T x = kLow + (kHigh - kLow) * static_cast<T>(i) / kSteps;
    const long double expected = std::exp(static_cast<long double>(x));
    ASSERT_LE(std::abs(static_cast<long double>(ddp::cpu::exp(x)) - expected),
              2 * std::numeric_limits<T>::epsilon() * expected)
        << x;
  }
}

TYPED_TEST(ExpOf, IsExactAtZeroAndBeyondTheRange) {
  using T = TypeParam;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  EXPECT_EQ(ddp::cpu::exp(T{0}), 1);
  EXPECT_EQ(ddp::cpu::exp(T{-0.0}), 1);
  for (const T x : {T{-1000}, std::numeric_limits<T>::lowest(), -kInfinity})
    EXPECT_EQ(ddp::cpu::exp(x), 0) << x;
  for (const T x : {T{1000}, std::numeric_limits<T>::max(), kInfinity})
    EXPECT_EQ(ddp::cpu::exp(x), kInfinity) << x;
  EXPECT_TRUE(std::isnan(ddp::cpu::exp(std::numeric_limits<T>::quiet_NaN())));
}

// Numbers next to the borders, where a wrong exponent would give garbage of any size.
TYPED_TEST(ExpOf, GrowsUpToInfinityAndFallsDownToZero) {
  using T = TypeParam;
  for (const int sign : {-1, 1}) {
    const T border = static_cast<T>(sign) * std::numeric_limits<T>::max_exponent * T(0.693147);
    T x = border - T(0.01);
    for (T before = 0; x < border + T(2); x += T(0.01)) {
      const T y = ddp::cpu::exp(x);
      ASSERT_GE(y, before) << x;
      before = y;
    }
  }
}

}  // namespace
}  // namespace ddp::cpu
