// The one place where CPU kernels meet OpenMP. Work is split statically into one contiguous range
// per thread, so that results are the same in every run with the same number of threads.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ddp::cpu {

/// First index of part `part` when [0, n) is split into `parts` ranges whose sizes differ by at
/// most one.
constexpr std::int64_t part_begin(std::int64_t n, std::int64_t parts, std::int64_t part) {
  return n / parts * part + std::min(part, n % parts);
}

/// Calls body(begin, end, thread) on up to `threads` threads; the ranges cover [0, n) once. `body`
/// must not throw.
template <class Body>
void parallel_for(int threads, std::int64_t n, const Body& body) {
  const int parts = static_cast<int>(std::clamp<std::int64_t>(n, 1, threads));
  if (parts == 1) return body(std::int64_t{0}, n, 0);
#pragma omp parallel for num_threads(parts) schedule(static, 1)
  for (int part = 0; part < parts; ++part)
    body(part_begin(n, parts, part), part_begin(n, parts, part + 1), part);
}

}  // namespace ddp::cpu
