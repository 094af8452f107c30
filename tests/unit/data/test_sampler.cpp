#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "core/base/error.h"
#include "core/data/sampler.h"

namespace ddp {
namespace {

using Order = std::vector<std::int64_t>;

Order order_of(const Permutation& permutation, std::int64_t n) {
  Order order;
  for (std::int64_t i = 0; i < n; ++i) order.push_back(permutation(i));
  return order;
}

Order identity(std::int64_t n) {
  Order order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Order sorted(Order order) {
  std::sort(order.begin(), order.end());
  return order;
}

TEST(Permutation, IsABijectionForEverySize) {
  std::vector<std::int64_t> sizes(300);
  std::iota(sizes.begin(), sizes.end(), 1);
  sizes.insert(sizes.end(), {1023, 1024, 1025, 4095, 4096, 4097, 60000, 65537});
  for (const std::int64_t n : sizes) {
    EXPECT_EQ(sorted(order_of(Permutation(n, 1, 0), n)), identity(n)) << n;
  }
}

TEST(Permutation, IsAFunctionOfSeedAndEpoch) {
  const Order order = order_of(Permutation(1000, 1, 0), 1000);
  EXPECT_EQ(order_of(Permutation(1000, 1, 0), 1000), order);
  EXPECT_NE(order_of(Permutation(1000, 1, 1), 1000), order);
  EXPECT_NE(order_of(Permutation(1000, 2, 0), 1000), order);
}

TEST(Permutation, MovesAboutEveryItem) {
  const Order order = order_of(Permutation(10000, 1, 0), 10000);
  int fixed = 0, neighbours = 0;
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    fixed += order[i] == static_cast<std::int64_t>(i);
    neighbours += order[i + 1] == order[i] + 1;
  }
  // Both counts are Poisson with mean 1 for a random permutation; P(> 10) is 1e-8.
  EXPECT_LE(fixed, 10);
  EXPECT_LE(neighbours, 10);
}

TEST(Permutation, EveryOrderOfAFewItemsIsAboutAsFrequent) {
  constexpr int kEpochs = 24000;
  for (const std::int64_t n : {2, 3, 4}) {
    std::map<Order, int> count;
    for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
      ++count[order_of(Permutation(n, 1, epoch), n)];
    }
    const int orders = n == 2 ? 2 : n == 3 ? 6 : 24;
    EXPECT_EQ(std::ssize(count), orders);
    for (const auto& [order, times] : count) {
      EXPECT_NEAR(times * orders / static_cast<double>(kEpochs), 1, 0.2);
    }
  }
}

TEST(Permutation, EveryPlaceIsAboutAsLikelyForAnItem) {
  constexpr int kEpochs = 20000;
  for (const std::int64_t n : {5, 17}) {
    std::vector<int> count(static_cast<std::size_t>(n));
    for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
      ++count[static_cast<std::size_t>(Permutation(n, 1, epoch)(0))];
    }
    const double expected = kEpochs / static_cast<double>(n);
    for (const int times : count) EXPECT_NEAR(times, expected, 5 * std::sqrt(expected));
  }
}

TEST(Permutation, WorksOnRangesThatFitInNoMemory) {
  for (const std::int64_t n : {(std::int64_t{1} << 40) - 1, std::int64_t{1} << 62}) {
    const Permutation permutation(n, 1, 0);
    std::set<std::int64_t> seen;
    for (std::int64_t i = 0; i < 1000; ++i) {
      const std::int64_t item = permutation(n - 1 - i);
      EXPECT_TRUE(item >= 0 && item < n);
      EXPECT_TRUE(seen.insert(item).second);
    }
  }
}

TEST(Permutation, RefusesWhatIsOutsideOfIt) {
  EXPECT_THROW(Permutation(0, 1, 0), InternalError);
  EXPECT_THROW(Permutation(3, 1, 0)(3), InternalError);
  EXPECT_THROW(Permutation(3, 1, 0)(-1), InternalError);
}

/// All samples of one epoch in order, padding included.
Order epoch_of(const Sampler& sampler, std::int64_t epoch, std::int64_t batch) {
  Order order;
  const std::int64_t steps = sampler.steps_per_epoch();
  for (std::int64_t step = epoch * steps; step < (epoch + 1) * steps; ++step) {
    for (std::int64_t p = 0; p < batch; ++p) order.push_back(sampler.sample(step, p));
  }
  return order;
}

TEST(Sampler, PaddedEpochHasEverySampleOnceAndPaddingLast) {
  for (const std::int64_t size : {1, 2, 21, 22, 24, 100}) {
    for (const std::int64_t batch : {1, 3, 8, 64, 200}) {
      const Sampler sampler(size, batch, false, 1);
      EXPECT_EQ(sampler.steps_per_epoch(), (size + batch - 1) / batch);
      for (const std::int64_t epoch : {0, 1, 7}) {
        const Order order = epoch_of(sampler, epoch, batch);
        const auto end = order.begin() + size;
        EXPECT_EQ(sorted({order.begin(), end}), identity(size));
        EXPECT_TRUE(std::all_of(end, order.end(), [](std::int64_t i) { return i == -1; }));
      }
    }
  }
}

TEST(Sampler, DroppedBatchIsTheEndOfThePaddedEpoch) {
  for (const std::int64_t size : {21, 22, 24, 100}) {
    const std::int64_t batch = 8;
    const Sampler drop(size, batch, true, 1), pad(size, batch, false, 1);
    EXPECT_EQ(drop.steps_per_epoch(), size / batch);
    for (const std::int64_t epoch : {0, 1, 7}) {
      Order padded = epoch_of(pad, epoch, batch);
      padded.resize(static_cast<std::size_t>(size / batch * batch));
      EXPECT_EQ(epoch_of(drop, epoch, batch), padded);
    }
  }
}

TEST(Sampler, EpochsDiffer) {
  const Sampler sampler(100, 10, true, 1);
  EXPECT_NE(epoch_of(sampler, 0, 10), epoch_of(sampler, 1, 10));
}

TEST(Sampler, GlobalBatchIsTheSameForAnyNumberOfRanks) {
  constexpr std::int64_t kBatch = 24;
  const Sampler sampler(100, kBatch, false, 3);
  for (std::int64_t step = 0; step < 2 * sampler.steps_per_epoch(); ++step) {
    Order expected;
    for (std::int64_t p = 0; p < kBatch; ++p) expected.push_back(sampler.sample(step, p));
    for (const std::int64_t ranks : {1, 2, 4}) {
      for (const std::int64_t accum : {1, 2, 3}) {
        const std::int64_t micro = kBatch / (ranks * accum);
        Order seen;
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
          for (std::int64_t micro_step = 0; micro_step < accum; ++micro_step) {
            for (std::int64_t item = 0; item < micro; ++item) {
              seen.push_back(sampler.sample(step, (rank * accum + micro_step) * micro + item));
            }
          }
        }
        EXPECT_EQ(seen, expected);
      }
    }
  }
}

TEST(Sampler, ASetSmallerThanTheBatchHasNoStepUnlessPadded) {
  const Sampler drop(7, 8, true, 1);
  EXPECT_EQ(drop.steps_per_epoch(), 0);
  EXPECT_THROW(drop.sample(0, 0), InternalError);
  EXPECT_EQ(Sampler(7, 8, false, 1).steps_per_epoch(), 1);
}

TEST(Sampler, RefusesPositionsOutsideOfTheBatch) {
  const Sampler sampler(100, 8, true, 1);
  EXPECT_THROW(sampler.sample(0, 8), InternalError);
  EXPECT_THROW(sampler.sample(0, -1), InternalError);
  EXPECT_THROW(sampler.sample(-1, 0), InternalError);
}

}  // namespace
}  // namespace ddp
