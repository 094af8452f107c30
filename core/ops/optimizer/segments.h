// Segment table of the slab kernels, and the loop that applies one thread's share of the slab to
// it. Used by the CPU kernels of this room.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/backend/cpu/parallel.h"
#include "core/graph/op_definition.h"
#include "core/ops/optimizer/optimizer.h"

namespace ddp {

/// Segment table as the attribute "segments": the members of each segment in their order, flattened
/// (exact up to 2^53).
Attribute segments_attribute(const std::vector<OptimizerSegment>& segments);
/// Reads it back; throws InternalError when segments overlap, are not in order, or end behind
/// `elements`.
std::vector<OptimizerSegment> segments_from(const Attributes& attributes, std::int64_t elements);

/// Throws InternalError unless all slabs of an optimizer op have one type.
void check_slabs(const OpSignature& signature, std::size_t outputs);

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
