#include "core/plan/slab.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "core/graph/differentiate.h"
#include "core/ops/fill/fill.h"
#include "core/ops/linear/linear.h"

namespace ddp {
namespace {

constexpr std::size_t kAlignment = 256;  // bytes

/// Four linear layers with sizes that fill no alignment unit.
class Slab : public testing::TestWithParam<DType> {
 protected:
  Slab() : graph_(GetParam()) {
    Value x = graph_.input("x", {Shape{2, 5}, GetParam()});
    for (int i = 1; i <= 4; ++i)
      x = linear(x, {.name = "fc" + std::to_string(i), .units = 3 + 17 * i});
    differentiate(graph_, x, fill(graph_, "seed", x.type(), 1.0));
    ready_ = ready_list(graph_);
  }
  SlabLayout layout(const std::vector<BucketRange>& ranges, int world_size) const {
    return slab_layout(graph_, ready_, ranges, world_size);
  }

  Graph graph_;
  ReadyList ready_;
};

TEST_P(Slab, OrdersParametersByTheOpThatFinishesThem) {
  EXPECT_EQ(ready_.size(), graph_.parameters().size());
  EXPECT_TRUE(std::ranges::is_sorted(ready_, {}, &ReadyParameter::ready_op));
  EXPECT_EQ(ready_.front().name.substr(0, 3), "fc4");
  EXPECT_EQ(ready_.back().name.substr(0, 3), "fc1");
  for (const ReadyParameter& item : ready_) {
    const Parameter& parameter = graph_.parameters()[item.parameter.index()];
    EXPECT_EQ(item.name, parameter.name);
    EXPECT_EQ(graph_.value(parameter.contributions.back()).producer.index(), item.ready_op);
  }
}

TEST_P(Slab, HoldsEveryParameterOnceAlignedAndInReadyOrder) {
  const SlabLayout slab = layout({{0, 3}, {3, 4}, {4, 8}}, 3);
  ASSERT_EQ(slab.segments.size(), ready_.size());
  std::size_t end = 0;
  for (std::size_t i = 0; i < ready_.size(); ++i) {
    const SlabSegment& segment = slab.segments[i];
    EXPECT_EQ(segment.parameter, ready_[i].parameter);
    EXPECT_EQ(segment.elements, ready_[i].elements);
    EXPECT_EQ(segment.offset * size_of(slab.dtype) % kAlignment, 0U);
    EXPECT_GE(segment.offset, end);
    EXPECT_EQ(segment.decay, graph_.parameters()[segment.parameter.index()].decay);
    end = segment.offset + segment.elements;
  }
  EXPECT_LE(end, slab.elements);
}

TEST_P(Slab, BucketsFillItInPartsThatDivideAmongTheRanks) {
  for (const int world_size : {1, 2, 3, 8}) {
    const SlabLayout slab = layout({{0, 3}, {3, 4}, {4, 8}}, world_size);
    const std::size_t unit = kAlignment * static_cast<std::size_t>(world_size);
    std::size_t at = 0, segment = 0;
    for (const Bucket& bucket : slab.buckets) {
      EXPECT_EQ(bucket.begin, at);
      EXPECT_EQ((bucket.end - bucket.begin) * size_of(slab.dtype) % unit, 0U);
      EXPECT_EQ(bucket.first_segment, segment);
      const SlabSegment& last = slab.segments[bucket.last_segment - 1];
      EXPECT_LE(last.offset + last.elements, bucket.end);
      EXPECT_LT((bucket.end - last.offset - last.elements) * size_of(slab.dtype), unit + kAlignment)
          << "more padding than needed";
      at = bucket.end;
      segment = bucket.last_segment;
    }
    EXPECT_EQ(at, slab.elements);
    EXPECT_EQ(segment, slab.segments.size());
  }
}

TEST_P(Slab, RefusesRangesThatDoNotCoverTheListOnce) {
  const std::vector<std::vector<BucketRange>> wrong{
      {}, {{0, 7}}, {{1, 8}}, {{0, 4}, {5, 8}}, {{0, 4}, {3, 8}}, {{0, 4}, {4, 4}, {4, 8}}};
  for (const std::vector<BucketRange>& ranges : wrong)
    EXPECT_THROW(layout(ranges, 2), InternalError);
}

INSTANTIATE_TEST_SUITE_P(DTypes, Slab, testing::Values(DType::kF32, DType::kF64),
                         [](const auto& instance) { return std::string(name_of(instance.param)); });

}  // namespace
}  // namespace ddp
