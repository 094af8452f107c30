// The exponential as arithmetic without branches and calls, so that the compiler computes a vector
// of elements at once where std::exp is a call for each of them. Kernels of softmax and GELU use
// it.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace ddp::cpu {

/// Coefficients 1/n! of the Taylor series of exp; the terms left out are below half an epsilon for
/// |r| <= ln(2)/2.
template <class T>
inline constexpr auto kExpSeries = [] {
  std::array<T, sizeof(T) == 8 ? 14 : 8> series{};
  double factorial = 1;
  for (std::size_t n = 0; n < series.size(); ++n) {
    if (n > 0) factorial *= static_cast<double>(n);
    series[n] = static_cast<T>(1 / factorial);
  }
  return series;
}();

/// exp(x) for float and double to about two units in the last place: 2^k exp(r) with k = x / ln 2
/// rounded, where exp(r) is a polynomial. Infinity beyond the largest number, 0 below twice the
/// smallest normal one, NaN for NaN.
template <class T>
inline T exp(T x) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  using Limits = std::numeric_limits<T>;
  constexpr int kMantissaBits = Limits::digits - 1;
  // Adding this leaves k in the lowest bits of the mantissa.
  constexpr T kRound = T{1.5} * static_cast<T>(Bits{1} << kMantissaBits);
  constexpr T kLn2 = T(0.693147180559945309417232121458176568L);
  constexpr T kLog2E = T(1.442695040888963407359924681001892137L);
  // ln 2 in two parts; k times the first one has no rounding error.
  constexpr T kLn2High = sizeof(T) == 8 ? T(0x1.62e42feep-1) : T(0x1.62e4p-1);
  constexpr T kLn2Low = T(0.693147180559945309417232121458176568L - kLn2High);
  constexpr T kLowest = Limits::min_exponent * kLn2;
  constexpr T kHighest = Limits::max_exponent * kLn2 * (1 - 4 * Limits::epsilon());

  const T shifted = x * kLog2E + kRound;
  const T k = shifted - kRound;
  const T r = (x - k * kLn2High) - k * kLn2Low;
  constexpr auto& series = kExpSeries<T>;
  T power = series.back();
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((power = power * r + series[series.size() - 2 - I]), ...);
  }
  (std::make_index_sequence<series.size() - 1>{});
  // k goes into the exponent.
  T y = std::bit_cast<T>(std::bit_cast<Bits>(power) +
                         (std::bit_cast<Bits>(shifted) << kMantissaBits));
  y = x < kLowest ? T{0} : y;
  y = x > kHighest ? Limits::infinity() : y;
  return x != x ? x : y;
}

}  // namespace ddp::cpu
