// Which elements a dropout drops: the same function of random bits on every backend. Element e of a
// sample draws word e % 4 of the sample's Philox block e / 4.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/base/philox.h"
#include "core/graph/attributes.h"

namespace ddp {

struct DropoutMask {
  PhiloxKey key;
  std::uint32_t threshold;  ///< an element is dropped when its 32 random bits are below
  double scale;             ///< of what is kept
};

/// Of the op's attributes.
inline DropoutMask dropout_mask(const Attributes& attributes) {
  const double probability = attributes.real("probability");
  return {.key = philox_key(static_cast<std::uint64_t>(attributes.integer("seed")),
                            RandomStream::kDropout,
                            static_cast<std::uint64_t>(attributes.integer("instance"))),
          .threshold =
              static_cast<std::uint32_t>(std::min(std::round(probability * 0x1p32), 0x1p32 - 1)),
          .scale = 1 / (1 - probability)};
}

}  // namespace ddp
