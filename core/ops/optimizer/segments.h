// Segment table of the slab kernels, and its cut into parts of bounded size.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/op_definition.h"
#include "core/ops/optimizer/optimizer.h"

namespace ddp {

/// Segment table as the attribute "segments": the members of each segment in their order, flattened
/// (exact up to 2^53).
Attribute segments_attribute(const std::vector<OptimizerSegment>& segments);
/// Reads it back; throws InternalError when segments overlap, are not in order, or end behind
/// `elements`.
std::vector<OptimizerSegment> segments_from(const Attributes& attributes, std::int64_t elements);

/// One segment of all `elements`.
inline std::vector<OptimizerSegment> whole_slab(std::int64_t elements) {
  return {{.begin = 0, .end = static_cast<std::size_t>(elements)}};
}

/// Elements [begin, begin + elements) of one segment.
struct SegmentPart {
  std::int64_t begin = 0;
  std::int32_t elements = 0;
  std::int32_t segment = 0;
};
/// All segments in their order, cut into parts of at most `most` elements. Cuts depend on nothing
/// else, so sums over parts are the same for any number of threads.
std::vector<SegmentPart> parts_of(const std::vector<OptimizerSegment>& segments, std::int32_t most);

/// Throws InternalError unless all slabs of an optimizer op have one type.
void check_slabs(const OpSignature& signature, std::size_t outputs);

}  // namespace ddp
