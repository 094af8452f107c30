#include "core/data/normalisation.h"

#include <algorithm>
#include <cmath>

namespace ddp {

std::pair<double, double> mean_and_stddev(const ByteHistogram& histogram) {
  std::uint64_t count = 0, sum = 0, squares = 0;
  for (std::uint64_t value = 0; value < histogram.size(); ++value) {
    count += histogram[value];
    sum += histogram[value] * value;
    squares += histogram[value] * value * value;
  }
  const double mean = static_cast<double>(sum) / static_cast<double>(count);
  const double variance =
      std::max(0.0, static_cast<double>(squares) / static_cast<double>(count) - mean * mean);
  return {mean / 255, std::sqrt(variance) / 255};
}

}  // namespace ddp
