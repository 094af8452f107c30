#include "core/data/stats.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/philox.h"
#include "tests/unit/data/idx_files.h"

namespace ddp {
namespace {

/// Random images of 3x2 pixels and 3 channels, of another brightness in each channel.
Samples random_samples(int count, std::uint64_t seed) {
  Samples samples{.image = {3, 2, 3}, .images = {}, .labels = {}};
  const PhiloxKey key = philox_key(seed, RandomStream::kSynthetic, 0);
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(count) * 18; ++i)
    samples.images.push_back(
        static_cast<std::uint8_t>(philox(key, 0, i, 0)[0] % (50 + 80 * (i % 3))));
  for (int i = 0; i < count; ++i) samples.labels.push_back(static_cast<std::uint8_t>(i % 3));
  return samples;
}

Bytes image(const Samples& samples, std::ptrdiff_t index) {
  return {samples.images.begin() + 18 * index, samples.images.begin() + 18 * (index + 1)};
}

TEST(Stats, MeanAndDeviationOfEachChannelAreThoseOfTwoPasses) {
  const Samples samples = random_samples(40, 1);
  const SplitStats stats = split_stats(samples, 3);
  ASSERT_EQ(stats.mean.size(), 3U);
  for (std::size_t channel = 0; channel < 3; ++channel) {
    double sum = 0, squares = 0;
    for (std::size_t i = channel; i < samples.images.size(); i += 3)
      sum += samples.images[i] / 255.0;
    const double mean = sum / 240;
    for (std::size_t i = channel; i < samples.images.size(); i += 3)
      squares += std::pow(samples.images[i] / 255.0 - mean, 2);
    // The sums are exact, their difference loses a few digits at most.
    EXPECT_NEAR(stats.mean[channel], mean, 1e-14);
    EXPECT_NEAR(stats.stddev[channel], std::sqrt(squares / 240), 1e-13);
  }
}

TEST(Stats, TheDeviationOfImagesThatAreAllAlikeIsZero) {
  for (const int value : {0, 7, 255}) {
    const Samples samples{.image = {3, 2, 3},
                          .images = Bytes(18 * 7, static_cast<std::uint8_t>(value)),
                          .labels = Bytes(7, 0)};
    EXPECT_EQ(split_stats(samples, 2).stddev, (std::vector{0.0, 0.0, 0.0}));
  }
}

TEST(Stats, ClassesAreCountedAndCompared) {
  const SplitStats stats = split_stats(random_samples(8, 1), 3);
  EXPECT_EQ(stats.samples, 8);
  EXPECT_EQ(stats.class_counts, (std::vector<std::int64_t>{3, 3, 2}));
  EXPECT_DOUBLE_EQ(stats.smallest_to_largest(), 2.0 / 3);
  EXPECT_EQ(split_stats(random_samples(8, 1), 4).smallest_to_largest(), 0);
}

TEST(Stats, DuplicatesAreAllImagesButTheFirstOfEachKind) {
  Samples samples = random_samples(4, 1);
  EXPECT_EQ(split_stats(samples, 3).duplicates, 0);
  samples.images = samples.images + image(samples, 1) + image(samples, 1) + image(samples, 3);
  samples.labels = samples.labels + Bytes{0, 1, 2};
  EXPECT_EQ(split_stats(samples, 3).duplicates, 3);
}

TEST(Stats, SharedImagesAreTheValidationSamplesSeenInTraining) {
  const Samples train = random_samples(6, 1);
  Samples validation = random_samples(2, 2);
  EXPECT_TRUE(shared_images(train, validation).empty());
  validation.images = validation.images + image(train, 5) + image(train, 0);
  EXPECT_EQ(shared_images(train, validation), (std::vector<std::int64_t>{2, 3}));
}

}  // namespace
}  // namespace ddp
