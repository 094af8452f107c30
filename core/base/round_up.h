// Rounding of sizes to the alignment of what holds them.
#pragma once

#include <cstddef>

namespace ddp {

/// The smallest multiple of `multiple` (above 0) that is not below `n`.
constexpr std::size_t round_up(std::size_t n, std::size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

}  // namespace ddp
