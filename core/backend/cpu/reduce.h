// Reductions of one row in an order that the compiler can compute with vectors: a fixed number of
// partial results side by side, combined in their order. The result depends on the row alone, never
// on threads. Kernels of layer norm and softmax use them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ddp::cpu {

/// Loops of 16 iterations or fewer would be unrolled into scalar code.
inline constexpr std::size_t kLanes = 32;

/// Σ term(j) over j in [0, n), in double.
template <class Term>
double sum(std::int64_t n, const Term& term) {
  std::array<double, kLanes> lanes{};
  const std::int64_t whole = n - n % static_cast<std::int64_t>(kLanes);
  for (std::int64_t j = 0; j < whole; j += static_cast<std::int64_t>(kLanes))
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] += static_cast<double>(term(j + static_cast<std::int64_t>(lane)));
  double total = 0;
  for (const double lane : lanes) total += lane;
  for (std::int64_t j = whole; j < n; ++j) total += static_cast<double>(term(j));
  return total;
}

/// The largest of x[0, n), n >= 1. With a NaN among them it is NaN or the largest of some others.
template <class T>
T largest(const T* x, std::int64_t n) {
  std::array<T, kLanes> lanes;
  lanes.fill(x[0]);
  const std::int64_t whole = n - n % static_cast<std::int64_t>(kLanes);
  for (std::int64_t j = 0; j < whole; j += static_cast<std::int64_t>(kLanes))
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const T candidate = x[j + static_cast<std::int64_t>(lane)];
      lanes[lane] = candidate > lanes[lane] ? candidate : lanes[lane];
    }
  T best = lanes[0];
  for (const T lane : lanes) best = lane > best ? lane : best;
  for (std::int64_t j = whole; j < n; ++j) best = x[j] > best ? x[j] : best;
  return best;
}

}  // namespace ddp::cpu
