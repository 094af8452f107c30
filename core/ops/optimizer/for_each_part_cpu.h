// The loop that applies one thread's share of a slab to its segments. Used by the CPU kernels of
// this room.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/backend/cpu/parallel.h"

namespace ddp {

/// Splits a slab of `elements` between threads, and calls body(segment, from, to) for the part
/// [from, to) of each segment that lies in a thread's share.
template <class Segment, class Body>
void for_each_part(int threads, std::int64_t elements, const std::vector<Segment>& segments,
                   const Body& body) {
  cpu::parallel_for(threads, elements, [&](std::int64_t begin, std::int64_t end, int) {
    for (const Segment& segment : segments) {
      const std::int64_t from = std::max(begin, static_cast<std::int64_t>(segment.begin));
      const std::int64_t to = std::min(end, static_cast<std::int64_t>(segment.end));
      if (from < to) body(segment, from, to);
    }
  });
}

}  // namespace ddp
