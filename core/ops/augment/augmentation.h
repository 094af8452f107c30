// What augmentation draws for a sample and how pixels are scaled: the same on every backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/philox.h"
#include "core/graph/attributes.h"

namespace ddp {

/// What happens to one image: output pixel (h, w) is input pixel (h + down, w' + right), w' = w or
/// mirrored.
struct Change {
  std::int64_t down = 0, right = 0;
  bool flip = false;
};

struct Augmentation {
  PhiloxKey key;
  std::uint32_t crop_pad;
  bool flip;

  constexpr Change draw(std::uint64_t step, std::uint64_t sample) const {
    const PhiloxBlock random = philox(key, step, sample, 0);
    return {shift(random[0]), shift(random[1]), flip && random[2] >> 31 != 0};
  }

 private:
  constexpr std::int64_t shift(std::uint32_t bits) const {
    return static_cast<std::int64_t>(uniform_below(bits, 2 * crop_pad + 1)) -
           static_cast<std::int64_t>(crop_pad);
  }
};

/// Of the attributes of "augment".
inline Augmentation augmentation(const Attributes& attributes) {
  return {
      philox_key(static_cast<std::uint64_t>(attributes.integer("seed")), RandomStream::kAugment),
      static_cast<std::uint32_t>(attributes.integer("crop_pad")), attributes.integer("flip") != 0};
}

/// A pixel becomes pixel · scale + shift.
struct PixelScale {
  double scale, shift;
};

/// One for each channel, of the attributes of "normalize" or "augment".
inline std::vector<PixelScale> pixel_scales(const Attributes& attributes) {
  const std::vector<double>& mean = attributes.list("mean");
  const std::vector<double>& stddev = attributes.list("stddev");
  std::vector<PixelScale> scales;
  for (std::size_t c = 0; c < mean.size(); ++c)
    scales.push_back({1 / (255 * stddev[c]), -mean[c] / stddev[c]});
  return scales;
}

}  // namespace ddp
