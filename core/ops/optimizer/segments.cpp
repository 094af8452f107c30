#include "core/ops/optimizer/segments.h"

#include <algorithm>

namespace ddp {
namespace {

constexpr std::size_t kNumbers = 5;  // of a segment

}  // namespace

Attribute segments_attribute(const std::vector<OptimizerSegment>& segments) {
  std::vector<double> flat;
  for (const OptimizerSegment& segment : segments)
    flat.insert(flat.end(), {static_cast<double>(segment.begin), static_cast<double>(segment.end),
                             segment.weight_decay, segment.lr_scale, segment.adapt ? 1.0 : 0.0});
  return flat;
}

std::vector<OptimizerSegment> segments_from(const Attributes& attributes, std::int64_t elements) {
  const std::vector<double>& flat = attributes.list("segments");
  DDP_CHECK(flat.size() % kNumbers == 0, "a segment table has {} numbers, not a multiple of {}",
            flat.size(), kNumbers);
  std::vector<OptimizerSegment> segments;
  double last_end = 0;
  for (std::size_t i = 0; i < flat.size(); i += kNumbers) {
    DDP_CHECK(flat[i] >= last_end && flat[i + 1] >= flat[i] &&
                  flat[i + 1] <= static_cast<double>(elements),
              "segment {} is elements [{}, {}) of a slab of {}, the one before ends at {}",
              i / kNumbers, flat[i], flat[i + 1], elements, last_end);
    last_end = flat[i + 1];
    segments.push_back({.begin = static_cast<std::size_t>(flat[i]),
                        .end = static_cast<std::size_t>(flat[i + 1]),
                        .weight_decay = flat[i + 2],
                        .lr_scale = flat[i + 3],
                        .adapt = flat[i + 4] != 0});
  }
  return segments;
}

std::vector<SegmentPart> parts_of(const std::vector<OptimizerSegment>& segments,
                                  std::int32_t most) {
  std::vector<SegmentPart> parts;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const auto end = static_cast<std::int64_t>(segments[s].end);
    for (auto begin = static_cast<std::int64_t>(segments[s].begin); begin < end; begin += most)
      parts.push_back(
          {.begin = begin,
           .elements = static_cast<std::int32_t>(std::min<std::int64_t>(most, end - begin)),
           .segment = static_cast<std::int32_t>(s)});
  }
  return parts;
}

void check_slabs(const OpSignature& signature, std::size_t outputs) {
  DDP_CHECK(signature.inputs.size() == 1 && signature.outputs.size() == outputs,
            "an optimizer op has {} inputs and {} outputs where 1 and {} are expected",
            signature.inputs.size(), signature.outputs.size(), outputs);
  for (const TensorType& slab : signature.outputs)
    DDP_CHECK(slab == signature.inputs[0], "a slab of {} {} meets a gradient slab of {} {}",
              slab.elements(), name_of(slab.dtype), signature.inputs[0].elements(),
              name_of(signature.inputs[0].dtype));
}

}  // namespace ddp
