#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/data/dataset.h"

namespace ddp {
namespace {

struct Sample {
  std::int32_t label = 0;
  std::vector<int> image;
  bool operator==(const Sample&) const = default;
};

std::vector<Sample> samples(const DatasetOptions& options, Split split) {
  const auto dataset = open_dataset(options, split);
  std::vector<Sample> all(static_cast<std::size_t>(dataset->info().size));
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(dataset->info().image.elements()));
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].label = dataset->read(static_cast<std::int64_t>(i), pixels);
    all[i].image.assign(pixels.begin(), pixels.end());
  }
  return all;
}

const DatasetOptions kOptions{.data = "synthetic", .synthetic_size = 500};

TEST(Synthetic, SamplesAreAFunctionOfSeedSplitAndIndex) {
  const std::vector<Sample> train = samples(kOptions, Split::kTrain);
  EXPECT_EQ(train, samples(kOptions, Split::kTrain));

  DatasetOptions limited = kOptions;
  limited.limit = 7;
  EXPECT_EQ(samples(limited, Split::kTrain), std::vector(train.begin(), train.begin() + 7));

  DatasetOptions other_seed = kOptions;
  other_seed.seed = 2;
  EXPECT_NE(samples(other_seed, Split::kTrain), train);
}

TEST(Synthetic, NoSampleOccursTwice) {
  std::set<std::vector<int>> seen;
  for (const Split split : {Split::kTrain, Split::kValidation}) {
    for (const Sample& sample : samples(kOptions, split)) {
      EXPECT_TRUE(seen.insert(sample.image).second);
    }
  }
}

TEST(Synthetic, LimitIsAtMostTheSize) {
  DatasetOptions options = kOptions;
  options.limit = 1000;
  EXPECT_EQ(open_dataset(options, Split::kTrain)->info().size, 500);
}

TEST(Synthetic, EveryClassIsAboutAsFrequent) {
  DatasetOptions options = kOptions;
  options.synthetic_size = 10000;
  options.synthetic_image = {1, 1, 1};
  std::vector<int> count(10);
  for (const Sample& sample : samples(options, Split::kTrain)) {
    ASSERT_TRUE(sample.label >= 0 && sample.label < 10);
    ++count[static_cast<std::size_t>(sample.label)];
  }
  // Five standard deviations of a binomial count.
  for (const int n : count) EXPECT_NEAR(n, 1000, 5 * std::sqrt(10000 * 0.1 * 0.9));
}

/// Share of validation images that are nearest to the mean training image of their own class.
double nearest_mean_accuracy(const DatasetOptions& options) {
  const std::size_t pixels = static_cast<std::size_t>(options.synthetic_image.elements());
  std::vector<std::vector<double>> mean(static_cast<std::size_t>(options.classes),
                                        std::vector<double>(pixels));
  std::vector<int> count(mean.size());
  for (const Sample& sample : samples(options, Split::kTrain)) {
    const auto label = static_cast<std::size_t>(sample.label);
    ++count[label];
    for (std::size_t p = 0; p < pixels; ++p) mean[label][p] += sample.image[p];
  }
  const std::vector<Sample> validation = samples(options, Split::kValidation);
  int correct = 0;
  for (const Sample& sample : validation) {
    const auto distance = [&](std::size_t c) {
      double sum = 0;
      for (std::size_t p = 0; p < pixels; ++p) {
        sum += std::pow(mean[c][p] / count[c] - sample.image[p], 2);
      }
      return sum;
    };
    std::size_t best = 0;
    for (std::size_t c = 1; c < mean.size(); ++c) {
      if (distance(c) < distance(best)) best = c;
    }
    correct += static_cast<std::int32_t>(best) == sample.label;
  }
  return correct / static_cast<double>(validation.size());
}

TEST(Synthetic, ClassesOfTheTrainingSplitAreThoseOfTheValidationSplit) {
  for (const Shape& image : {Shape{28, 28, 1}, Shape{9, 17, 3}}) {
    DatasetOptions options = kOptions;
    options.synthetic_image = image;
    options.classes = 6;
    EXPECT_GE(nearest_mean_accuracy(options), 0.95) << image.to_string();
  }
}

TEST(Synthetic, MakesAnyShapeAndAnyNumberOfClasses) {
  for (const Shape& image : {Shape{1, 1, 1}, Shape{3, 2, 1}, Shape{5, 33, 3}, Shape{32, 32, 4}}) {
    for (const int classes : {2, 3, 1000}) {
      DatasetOptions options = kOptions;
      options.synthetic_image = image;
      options.classes = classes;
      const auto dataset = open_dataset(options, Split::kTrain);
      EXPECT_EQ(dataset->info().image, image);
      EXPECT_EQ(dataset->info().classes, classes);
      EXPECT_EQ(std::ssize(dataset->info().mean), image[2]);
      EXPECT_EQ(std::ssize(dataset->info().stddev), image[2]);
      for (const Sample& sample : samples(options, Split::kTrain)) {
        ASSERT_TRUE(sample.label >= 0 && sample.label < classes);
      }
    }
  }
}

TEST(Synthetic, InfoTellsMeanAndDeviationOfThePixels) {
  DatasetOptions options = kOptions;
  options.classes = 200;  // many patterns, so that they are a fair sample of all
  double sum = 0, squares = 0, n = 0;
  for (const Sample& sample : samples(options, Split::kTrain)) {
    for (const int pixel : sample.image) {
      sum += pixel / 255.0;
      squares += std::pow(pixel / 255.0, 2);
      ++n;
    }
  }
  const DatasetInfo info = open_dataset(options, Split::kTrain)->info();
  EXPECT_NEAR(sum / n, info.mean[0], 0.01);
  EXPECT_NEAR(std::sqrt(squares / n - std::pow(sum / n, 2)), info.stddev[0], 0.01);
}

TEST(Synthetic, GivenNormalisationIsKept) {
  DatasetOptions options = kOptions;
  options.mean = {0.25};
  options.stddev = {0.75};
  const DatasetInfo info = open_dataset(options, Split::kTrain)->info();
  EXPECT_EQ(info.mean, options.mean);
  EXPECT_EQ(info.stddev, options.stddev);
}

TEST(Synthetic, RefusesNoSamplesAndNoPixels) {
  DatasetOptions options = kOptions;
  options.synthetic_size = 0;
  EXPECT_THROW(open_dataset(options, Split::kTrain), InternalError);
  options = kOptions;
  options.synthetic_image = {28, 28};
  EXPECT_THROW(open_dataset(options, Split::kTrain), InternalError);
}

}  // namespace
}  // namespace ddp
