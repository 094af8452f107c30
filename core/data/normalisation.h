// Mean and standard deviation that images are normalised with, per channel and of pixels scaled to
// [0, 1], and where these figures come from. Measured ones are computed from exact integer sums, so
// they are the same on every rank. Used by the readers of data sets and by `ddptrain data stats`.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ddp {

/// How often each byte value occurs.
using ByteHistogram = std::array<std::uint64_t, 256>;

struct Normalisation {
  std::vector<double> mean, stddev;  ///< per channel; empty: to be measured
  std::string source;  ///< "preset of cifar-10", "measured over 60000 training images"
};

/// Mean and standard deviation (of the population) of pixels scaled to [0, 1]; 0, exactly, of pixels
/// that are all equal.
std::pair<double, double> mean_and_stddev(const ByteHistogram& histogram);

}  // namespace ddp
