#include "comm/bucket_plan.h"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "core/base/philox.h"

namespace ddp::comm {
namespace {

ReadyList ready_list(const std::vector<std::size_t>& elements) {
  ReadyList list;
  for (std::size_t i = 0; i < elements.size(); ++i)
    list.push_back({ParamId(i), fmt::format("p{}", i), elements[i], i});
  return list;
}

std::size_t bytes_of(const ReadyList& list, BucketRange range, std::size_t element_bytes = 4) {
  std::size_t elements = 0;
  for (std::size_t i = range.begin; i < range.end; ++i) elements += list[i].elements;
  return elements * element_bytes;
}

/// Lists of 0 to 40 parameters whose sizes spread over six decades, as in real models, with limits
/// of the same spread.
template <class Law>
void for_all_lists(const Law& law) {
  const PhiloxKey key = philox_key(7, RandomStream::kSynthetic);
  for (std::uint64_t trial = 0; trial < 500; ++trial) {
    auto draw = [&, block = 0U]() mutable { return philox(key, 0, trial, block++)[0]; };
    std::vector<std::size_t> sizes(uniform_below(draw(), 41));
    for (std::size_t& size : sizes) size = 1 + (draw() >> (8 + uniform_below(draw(), 20)));
    const std::size_t limit = trial % 4 == 0 ? 0 : 64 + (draw() >> uniform_below(draw(), 24));
    SCOPED_TRACE(fmt::format("trial {}, {} parameters, limit {}", trial, sizes.size(), limit));
    law(ready_list(sizes), BucketLimits{.element_bytes = 4, .bytes = limit});
  }
}

TEST(BucketPlan, CoversEveryParameterOnceInReadyOrder) {
  for_all_lists([](const ReadyList& list, const BucketLimits& limits) {
    std::size_t next = 0;
    for (const BucketRange& bucket : bucket_plan(list, {}, limits)) {
      EXPECT_EQ(bucket.begin, next);
      EXPECT_LT(bucket.begin, bucket.end);
      next = bucket.end;
    }
    EXPECT_EQ(next, list.size());
  });
}

TEST(BucketPlan, ExceedsTheLimitOnlyWithASingleParameter) {
  for_all_lists([](const ReadyList& list, const BucketLimits& limits) {
    if (limits.bytes == 0) return;
    for (const BucketRange& bucket : bucket_plan(list, {}, limits)) {
      EXPECT_TRUE(bytes_of(list, bucket) <= limits.bytes || bucket.end - bucket.begin == 1);
    }
  });
}

TEST(BucketPlan, ClosesOnlyWhenTheNextParameterWouldNotFit) {
  for_all_lists([](const ReadyList& list, const BucketLimits& limits) {
    if (limits.bytes == 0) return;
    const auto buckets = bucket_plan(list, {}, limits);
    for (std::size_t i = 0; i + 2 < buckets.size(); ++i) {
      const BucketRange extended{buckets[i].begin, buckets[i].end + 1};
      EXPECT_GT(bytes_of(list, extended), limits.bytes);
    }
  });
}

TEST(BucketPlan, LastBucketIsAQuarterOfTheLimitOrOneParameter) {
  for_all_lists([](const ReadyList& list, const BucketLimits& limits) {
    if (limits.bytes == 0 || list.empty()) return;
    const BucketRange last = bucket_plan(list, {}, limits).back();
    EXPECT_TRUE(bytes_of(list, last) <= limits.bytes / 4 || last.end - last.begin == 1);
  });
}

TEST(BucketPlan, IsAFunctionOfItsArguments) {
  for_all_lists([](const ReadyList& list, const BucketLimits& limits) {
    EXPECT_EQ(bucket_plan(list, {}, limits), bucket_plan(list, {}, limits));
  });
}

TEST(BucketPlan, ClosesAtByteLimit) {
  // 4-byte elements, limit 40: the second bucket ends exactly at the limit, the last parameter
  // stays alone.
  const auto buckets =
      bucket_plan(ready_list({6, 5, 5, 1, 9}), {}, {.element_bytes = 4, .bytes = 40});
  EXPECT_EQ(buckets, (std::vector<BucketRange>{{0, 1}, {1, 3}, {3, 4}, {4, 5}}));
}

TEST(BucketPlan, CountsBytesOfTheElementType) {
  const ReadyList list = ready_list({5, 5, 5});
  EXPECT_EQ(bucket_plan(list, {}, {.element_bytes = 4, .bytes = 40}).size(), 2U);
  EXPECT_EQ(bucket_plan(list, {}, {.element_bytes = 8, .bytes = 40}).size(), 3U);
}

TEST(BucketPlan, OversizeParameterIsAlone) {
  const auto buckets =
      bucket_plan(ready_list({1, 100, 1, 1}), {}, {.element_bytes = 4, .bytes = 40});
  EXPECT_EQ(buckets, (std::vector<BucketRange>{{0, 1}, {1, 2}, {2, 4}}));
}

TEST(BucketPlan, EmptyListHasNoBucket) { EXPECT_TRUE(bucket_plan({}, {}, {}).empty()); }

TEST(BucketPlan, OneParameterIsOneBucket) {
  EXPECT_EQ(bucket_plan(ready_list({7}), {}, {}), (std::vector<BucketRange>{{0, 1}}));
}

TEST(BucketPlan, ChosenSizeKeepsLatencySmallAndOverlapPossible) {
  const LinkModel link{.alpha = 20e-6, .beta = 1.0 / 5e9};
  for (const std::size_t layers : {400U, 4000U, 40000U}) {
    const ReadyList list = ready_list(std::vector<std::size_t>(layers, 4096));
    const auto buckets = bucket_plan(list, link, {.element_bytes = 4});
    EXPECT_GE(buckets.size(), 4U);
    for (std::size_t i = 0; i + 2 < buckets.size(); ++i) {
      const double transfer = static_cast<double>(bytes_of(list, buckets[i])) * link.beta;
      EXPECT_LT(link.alpha / (link.alpha + transfer), 0.2);
    }
  }
}

TEST(BucketPlan, SlowerCallsGiveFewerBuckets) {
  const ReadyList list = ready_list(std::vector<std::size_t>(1000, 4096));
  const auto fast = bucket_plan(list, {.alpha = 5e-6, .beta = 2e-10}, {});
  const auto slow = bucket_plan(list, {.alpha = 100e-6, .beta = 2e-10}, {});
  EXPECT_LT(slow.size(), fast.size());
}

}  // namespace
}  // namespace ddp::comm
