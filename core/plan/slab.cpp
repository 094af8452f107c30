#include "core/plan/slab.h"

#include <algorithm>

#include "core/base/round_up.h"

namespace ddp {
namespace {

constexpr std::size_t kAlignment = 256;  // bytes

}  // namespace

std::size_t last_contribution(const Graph& graph, const Parameter& parameter) {
  std::size_t last = 0;
  for (const ValueId contribution : parameter.contributions)
    last = std::max(last, graph.value(contribution).producer.index());
  return last;
}

ReadyList ready_list(const Graph& graph) {
  ReadyList ready;
  for (std::size_t i = 0; i < graph.parameters().size(); ++i) {
    const Parameter& parameter = graph.parameters()[i];
    ready.push_back(
        {.parameter = ParamId(i),
         .name = parameter.name,
         .elements = static_cast<std::size_t>(graph.value(parameter.value).type.elements()),
         .ready_op = last_contribution(graph, parameter)});
  }
  std::ranges::stable_sort(ready, {}, &ReadyParameter::ready_op);
  return ready;
}

SlabLayout slab_layout(const Graph& graph, const ReadyList& ready,
                       const std::vector<BucketRange>& ranges, int world_size) {
  SlabLayout layout{.dtype = graph.master_dtype(), .compute = graph.compute_dtype()};
  const std::size_t alignment = kAlignment / size_of(layout.dtype);
  std::size_t covered = 0;
  for (const BucketRange& range : ranges) {
    DDP_CHECK(range.begin == covered && range.end > range.begin,
              "bucket [{}, {}) follows parameter {}", range.begin, range.end, covered);
    covered = range.end;
    Bucket bucket{.begin = layout.elements,
                  .end = 0,
                  .first_segment = range.begin,
                  .last_segment = range.end};
    std::size_t offset = bucket.begin;
    for (std::size_t i = range.begin; i < range.end; ++i) {
      const Parameter& parameter = graph.parameters()[ready[i].parameter.index()];
      layout.segments.push_back({.parameter = ready[i].parameter,
                                 .name = ready[i].name,
                                 .offset = offset,
                                 .elements = ready[i].elements,
                                 .decay = parameter.decay});
      offset = round_up(offset + ready[i].elements, alignment);
    }
    bucket.end = bucket.begin +
                 round_up(offset - bucket.begin, alignment * static_cast<std::size_t>(world_size));
    layout.elements = bucket.end;
    layout.buckets.push_back(bucket);
  }
  for (const RunningStatistics& running : graph.statistics()) {
    const auto channels = static_cast<std::size_t>(graph.value(running.mean).type.elements());
    layout.statistics.push_back({.name = running.name,
                                 .offset = layout.statistics_elements,
                                 .channels = channels,
                                 .momentum = running.momentum});
    layout.statistics_elements += round_up(2 * channels + 1, alignment);
  }
  DDP_CHECK(covered == ready.size(), "the buckets cover {} of {} parameters", covered,
            ready.size());
  return layout;
}

}  // namespace ddp
