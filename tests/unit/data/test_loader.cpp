#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "core/base/error.h"
#include "core/data/loader.h"
#include "tests/support/allocations/allocations.h"
#include "tests/unit/data/idx_files.h"

namespace ddp {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// A million images of 2x3 pixels that show their index. `on_read` may wait or throw.
class FakeDataset final : public Dataset {
 public:
  explicit FakeDataset(std::function<void(std::int64_t)> on_read = {})
      : on_read_(std::move(on_read)) {
    info_.image = {2, 3, 1};
    info_.classes = 10;
    info_.size = 1000000;
  }
  const DatasetInfo& info() const override { return info_; }
  std::int32_t read(std::int64_t index, std::span<std::uint8_t> image) const override {
    if (on_read_) on_read_(index);
    std::fill(image.begin(), image.end(), static_cast<std::uint8_t>(index));
    ++reads_;
    return static_cast<std::int32_t>(index % 10);
  }
  std::int64_t reads() const { return reads_; }

 private:
  DatasetInfo info_;
  std::function<void(std::int64_t)> on_read_;
  mutable std::atomic<std::int64_t> reads_ = 0;
};

constexpr std::int64_t kBatch = 4;

/// Sample 4 q + item for item `item` of micro-batch q; every seventh is padding.
std::int64_t fake_index(std::int64_t number, std::int64_t item) {
  const std::int64_t sample = number * kBatch + item;
  return sample % 7 == 6 ? -1 : sample;
}

Loader::Options options(std::int64_t count, int threads = 1, int depth = 4) {
  return {.micro_batch = kBatch, .first = 0, .count = count, .threads = threads, .depth = depth};
}

void expect_micro_batch(const MicroBatch& batch, std::int64_t number) {
  const FakeDataset dataset;
  MicroBatch expected = make_micro_batch(kBatch, dataset.info().image);
  read_micro_batch(dataset, fake_index, number, expected);
  EXPECT_EQ(batch.images, expected.images) << number;
  EXPECT_EQ(batch.labels, expected.labels) << number;
  EXPECT_EQ(batch.weights, expected.weights) << number;
  EXPECT_EQ(batch.sample_ids, expected.sample_ids) << number;
}

TEST(MicroBatch, HoldsSamplesAndBlackPaddingOfWeightZero) {
  const FakeDataset dataset;
  MicroBatch batch = make_micro_batch(kBatch, dataset.info().image);
  std::fill(batch.images.begin(), batch.images.end(), std::uint8_t{77});
  read_micro_batch(dataset, fake_index, 1, batch);
  EXPECT_EQ(batch.labels, (std::vector<std::int32_t>{4, 5, 0, 7}));
  EXPECT_EQ(batch.weights, (std::vector<float>{1, 1, 0, 1}));
  EXPECT_EQ(batch.sample_ids, (std::vector<std::int64_t>{4, 5, 0, 7}));
  EXPECT_EQ(batch.images, Bytes(6, 4) + Bytes(6, 5) + Bytes(6, 0) + Bytes(6, 7));
}

TEST(Loader, HandsOverEveryMicroBatchOnceInOrder) {
  const FakeDataset dataset;
  for (const int threads : {1, 2, 3, 4}) {
    for (const int depth : {1, 2, 5}) {
      for (const std::int64_t count : {0, 1, 2, 3, 50}) {
        Loader loader(dataset, fake_index, options(count, threads, depth));
        for (std::int64_t k = 0; k < count; ++k) expect_micro_batch(loader.next(), k);
      }
    }
  }
}

TEST(Loader, KeepsOrderWhenThreadsOvertakeEachOther) {
  // Every third micro-batch is slow, so the others are ready before it.
  const FakeDataset dataset([](std::int64_t sample) {
    if (sample / kBatch % 3 == 0) std::this_thread::sleep_for(1ms);
  });
  Loader loader(dataset, fake_index, options(30, 4, 6));
  for (std::int64_t k = 0; k < 30; ++k) expect_micro_batch(loader.next(), k);
}

TEST(Loader, StartsAtAnyMicroBatch) {
  const FakeDataset dataset;
  Loader::Options from_100 = options(3, 2);
  from_100.first = 100;
  Loader loader(dataset, fake_index, from_100);
  for (std::int64_t k = 100; k < 103; ++k) expect_micro_batch(loader.next(), k);
}

TEST(Loader, ReadsAheadAsFarAsItsDepthAndNoFurther) {
  constexpr int kDepth = 3;
  const auto every_sample = [](std::int64_t number, std::int64_t item) {
    return number * kBatch + item;
  };
  const FakeDataset dataset;
  Loader loader(dataset, every_sample, options(100, 4, kDepth));
  for (std::int64_t handed = 0; handed < 20; ++handed) {
    // The micro-batch that was handed over last still has its buffer.
    const std::int64_t ahead = (std::max<std::int64_t>(handed - 1, 0) + kDepth + 1) * kBatch;
    while (dataset.reads() < ahead) std::this_thread::yield();
    std::this_thread::sleep_for(1ms);
    EXPECT_EQ(dataset.reads(), ahead);
    loader.next();
  }
}

TEST(Loader, AMicroBatchStaysUntilTheFollowingCall) {
  const FakeDataset dataset;
  Loader loader(dataset, fake_index, options(40, 3, 1));
  for (std::int64_t k = 0; k < 40; ++k) {
    const MicroBatch& batch = loader.next();
    for (int i = 0; i < 20; ++i) std::this_thread::yield();
    expect_micro_batch(batch, k);
  }
}

TEST(Loader, RethrowsAnErrorWhereItBelongs) {
  for (const int threads : {1, 4}) {
    for (const std::int64_t bad : {0, 1, 6, 9}) {
      const FakeDataset dataset([bad](std::int64_t sample) {
        if (sample == bad * kBatch) throw RecordError("images", sample, "is torn");
      });
      Loader loader(dataset, fake_index, options(10, threads));
      for (std::int64_t k = 0; k < bad; ++k) expect_micro_batch(loader.next(), k);
      const std::string record = fmt::format("images, record {}: is torn", bad * kBatch);
      EXPECT_EQ(data_error([&] { loader.next(); }), record);
      EXPECT_EQ(data_error([&] { loader.next(); }), record) << "it stays an error";
    }
  }
}

TEST(Loader, RethrowsAnErrorOfTheIndex) {
  const FakeDataset dataset;
  const auto failing = [](std::int64_t, std::int64_t) -> std::int64_t {
    throw std::out_of_range("no such step");
  };
  Loader loader(dataset, failing, options(10, 2));
  EXPECT_THROW(loader.next(), std::out_of_range);
}

TEST(Loader, AskingForMoreThanThereIsIsADefect) {
  const FakeDataset dataset;
  Loader loader(dataset, fake_index, options(2));
  loader.next();
  loader.next();
  EXPECT_THROW(loader.next(), InternalError);
  Loader empty(dataset, fake_index, options(0));
  EXPECT_THROW(empty.next(), InternalError);
}

TEST(Loader, EndsAtAnyMoment) {
  const FakeDataset dataset;
  for (const int threads : {1, 4}) {
    for (const int depth : {1, 3}) {
      for (std::int64_t used = 0; used <= 6; ++used) {
        Loader loader(dataset, fake_index, options(used == 6 ? 6 : 1000000, threads, depth));
        for (std::int64_t k = 0; k < used; ++k) expect_micro_batch(loader.next(), k);
        if (used % 2 == 1) std::this_thread::sleep_for(1ms);  // threads wait for a free buffer
      }
    }
  }
}

TEST(Loader, EndsWithinAMicroBatch) {
  const FakeDataset dataset([](std::int64_t) { std::this_thread::sleep_for(1ms); });
  constexpr std::int64_t kHuge = 100000;
  {
    Loader loader(dataset, [](std::int64_t, std::int64_t item) { return item; },
                  {.micro_batch = kHuge, .first = 0, .count = 2, .threads = 2, .depth = 1});
    while (dataset.reads() == 0) std::this_thread::yield();
  }
  EXPECT_LT(dataset.reads(), kHuge);
}

TEST(Loader, MeasuresTheTimeThatTheConsumerWaits) {
  const FakeDataset dataset([](std::int64_t) { std::this_thread::sleep_for(1ms); });
  Loader loader(dataset, fake_index, options(20, 1, 1));
  EXPECT_EQ(loader.waited_seconds(), 0);
  std::chrono::duration<double> inside{};
  for (int k = 0; k < 20; ++k) {
    const auto start = std::chrono::steady_clock::now();
    loader.next();
    inside += std::chrono::steady_clock::now() - start;
    EXPECT_LE(loader.waited_seconds(), inside.count());
  }
  EXPECT_GT(loader.waited_seconds(), 0);
}

TEST(Loader, NextAllocatesNothing) {
  const FakeDataset dataset([](std::int64_t) { std::this_thread::sleep_for(100us); });
  Loader loader(dataset, fake_index, options(50, 2, 2));
  test::take_allocations();
  for (int k = 0; k < 50; ++k) loader.next();
  EXPECT_EQ(test::take_allocations().calls, 0U);
  auto counted = std::make_unique<int>(1);
  EXPECT_EQ(test::take_allocations().calls, 1U) << "the count works";
}

TEST(Loader, RefusesSettingsThatReadNothing) {
  const FakeDataset dataset;
  EXPECT_THROW(Loader(dataset, fake_index, options(1, 0)), InternalError);
  EXPECT_THROW(Loader(dataset, fake_index, options(1, 1, 0)), InternalError);
  EXPECT_THROW(Loader(dataset, fake_index, options(-1)), InternalError);
  Loader::Options no_samples = options(1);
  no_samples.micro_batch = 0;
  EXPECT_THROW(Loader(dataset, fake_index, no_samples), InternalError);
}

TEST(Loader, ReadsADataSetFromSeveralThreads) {
  const auto dataset = open_dataset({.data = "synthetic", .synthetic_size = 64}, Split::kTrain);
  const auto index = [](std::int64_t number, std::int64_t item) { return number * kBatch + item; };
  Loader loader(*dataset, index, options(16, 4));
  MicroBatch expected = make_micro_batch(kBatch, dataset->info().image);
  for (std::int64_t k = 0; k < 16; ++k) {
    read_micro_batch(*dataset, index, k, expected);
    const MicroBatch& batch = loader.next();
    EXPECT_EQ(batch.images, expected.images);
    EXPECT_EQ(batch.labels, expected.labels);
  }
}

}  // namespace
}  // namespace ddp
