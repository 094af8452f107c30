// bfloat16 on the host: the upper half of a float. Kernels on the GPU have CUDA's own type of the
// same bits; this one is for what the host reads and writes: parameters of the compute type, and
// tests.
#pragma once

#include <bit>
#include <cstdint>

#include "core/tensor/dtype.h"

namespace ddp {

struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  /// Rounds to nearest, ties to even; NaN stays NaN.
  explicit BFloat16(float value) {
    const auto wide = std::bit_cast<std::uint32_t>(value);
    bits = value != value ? std::uint16_t{0x7FFF}
                          : static_cast<std::uint16_t>((wide + 0x7FFF + ((wide >> 16) & 1)) >> 16);
  }
  explicit BFloat16(double value) : BFloat16(static_cast<float>(value)) {}
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  explicit operator double() const { return static_cast<float>(*this); }
};

template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::kBF16;
};

}  // namespace ddp
