// The data sets that are known by name: number and names of their classes, and the mean and
// standard deviation of their training images. The one table of presets; find_set looks them up.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddp {

struct KnownSet {
  std::string_view name;
  int classes = 0;
  std::vector<double> mean, stddev;           ///< per channel, of pixels scaled to [0, 1]
  std::vector<std::string> class_names = {};  ///< empty: a file of the set has them
};

/// The set called `name`, or null.
const KnownSet* known_set(std::string_view name);

}  // namespace ddp
