// Figures about the samples of a data set: how many of each class, how bright, how many twice.
// Pure functions; `ddptrain data stats` prints them, and an inspection warns by them.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/data/image_set.h"

namespace ddp {

struct SplitStats {
  std::int64_t samples = 0;
  std::vector<std::int64_t> class_counts;  ///< by class
  std::vector<double> mean, stddev;        ///< per channel, of pixels scaled to [0, 1]
  std::int64_t duplicates = 0;             ///< samples whose very image stands earlier in the split

  /// Samples of the smallest class as a fraction of those of the largest.
  double smallest_to_largest() const;
};

/// Figures of one split with at least one sample and labels in [0, classes).
SplitStats split_stats(const Samples& samples, int classes);

/// A sample whose very image stands earlier in the split with another label, and that sample; the
/// first such pair. Nothing when there is none.
std::optional<std::pair<std::int64_t, std::int64_t>> contradiction(const Samples& samples);

/// Samples by class; labels outside [0, classes) are left out.
std::vector<std::int64_t> class_counts(const Samples& samples, int classes);

/// The validation samples whose very image is among the training images too, compared by 64-bit
/// hash.
std::vector<std::int64_t> shared_images(const Samples& train, const Samples& validation);

}  // namespace ddp
