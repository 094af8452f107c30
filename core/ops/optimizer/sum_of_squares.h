// Sums of squares in blocks of fixed size, so that a norm does not depend on the number of threads,
// which may differ between ranks: replicas that scaled by different norms would drift apart. Used
// by finish_step and lars on the CPU.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>

namespace ddp {

/// Elements whose squares make one partial sum.
inline constexpr std::int64_t kNormBlock = 16384;

constexpr std::int64_t norm_blocks(std::int64_t elements) {
  return (elements + kNormBlock - 1) / kNormBlock;
}

template <class T>
double sum_of_squares(const T* x, std::int64_t n) {
  std::array<double, 16> lanes{};  // independent sums, so that the compiler may use vectors
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (std::int64_t lane = 0; lane < 16; ++lane) {
      const double v = static_cast<double>(x[i + lane]);
      lanes[static_cast<std::size_t>(lane)] += v * v;
    }
  for (; i < n; ++i) lanes[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return std::accumulate(lanes.begin(), lanes.end(), 0.0);
}

}  // namespace ddp
