// Division of an index by an extent that is the same for a whole launch. Kernels that split one
// index into several use it, since the GPU has no instruction that divides.
#pragma once

#include <cstdint>

namespace ddp::cuda {

/// Divides numbers in [0, 2^31) by one divisor with a multiplication: n / d = (n * m >> 32 + n) >>
/// s, s = ceil(log2 d), m = 2^32 (2^s - d) / d + 1 (Granlund & Montgomery, PLDI 1994).
class Divisor {
 public:
  explicit Divisor(std::int64_t divisor) : divisor_(static_cast<std::uint32_t>(divisor)) {
    while ((std::uint64_t{1} << shift_) < divisor_) ++shift_;
    multiplier_ = static_cast<std::uint32_t>(
        (std::uint64_t{1} << 32) * ((std::uint64_t{1} << shift_) - divisor_) / divisor_ + 1);
  }
  friend constexpr int operator/(int n, const Divisor& d) {
    const auto high = static_cast<std::uint32_t>(
        (static_cast<std::uint64_t>(static_cast<std::uint32_t>(n)) * d.multiplier_) >> 32);
    return static_cast<int>((high + static_cast<std::uint32_t>(n)) >> d.shift_);
  }
  /// Replaces `n` by the quotient and returns the remainder.
  constexpr int take_remainder(int& n) const {
    const int quotient = n / *this;
    const int remainder = n - quotient * static_cast<int>(divisor_);
    n = quotient;
    return remainder;
  }

 private:
  std::uint32_t divisor_, multiplier_ = 0, shift_ = 0;
};

}  // namespace ddp::cuda
