#include "core/ops/augment/augment.h"

#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include <gmock/gmock.h>

#include "core/base/philox.h"
#include "tests/support/gradcheck.h"

namespace ddp::test {
namespace {

const NormalizeOptions kThreeChannels{.mean = {0.1, 0.5, 0.9}, .stddev = {0.2, 0.3, 0.4}};

struct Images {
  Shape shape;
  std::vector<double> pixels, ids;
};

Images make_images(const Shape& shape) {
  Images images{.shape = shape, .pixels = random_numbers(shape.elements(), 0, 256, 5), .ids = {}};
  for (double& pixel : images.pixels) pixel = std::floor(pixel);
  for (std::int64_t n = 0; n < shape[0]; ++n) images.ids.push_back(static_cast<double>(31 * n + 7));
  return images;
}

/// The network input: augmented, or only normalised when there are no augmentation options.
std::vector<double> network_input(const Images& images, const NormalizeOptions& normalization,
                                  std::optional<AugmentOptions> options, std::uint64_t step = 1,
                                  DType dtype = DType::kF64, int threads = 2) {
  Graph graph(dtype);
  const Value x = graph.input("images", {images.shape, DType::kU8});
  const Value ids = graph.input("ids", {{images.shape[0]}, DType::kI64});
  if (options) options->normalize = normalization;
  const Value y = options ? augment(x, ids, *options) : normalize(x, normalization);
  GraphRunner runner(graph, {.threads = threads});
  runner.set(x.id, images.pixels);
  runner.set(ids.id, images.ids);
  runner.state.step = step;
  runner.run();
  return runner.get(y.id);
}

/// Pixel by pixel, as the header says it.
std::vector<double> reference(const Images& images, const NormalizeOptions& normalization,
                              const AugmentOptions& options, std::uint64_t step) {
  const std::int64_t height = images.shape[1], width = images.shape[2], channels = images.shape[3];
  const PhiloxKey key = philox_key(options.seed, RandomStream::kAugment);
  std::vector<double> result;
  for (std::int64_t n = 0; n < images.shape[0]; ++n) {
    const PhiloxBlock random =
        philox(key, step, static_cast<std::uint64_t>(images.ids[static_cast<std::size_t>(n)]), 0);
    const auto range = static_cast<std::uint32_t>(2 * options.crop_pad + 1);
    const std::int64_t down = std::int64_t{uniform_below(random[0], range)} - options.crop_pad;
    const std::int64_t right = std::int64_t{uniform_below(random[1], range)} - options.crop_pad;
    const bool mirrored = options.flip && random[2] >= 0x80000000U;
    for (std::int64_t h = 0; h < height; ++h)
      for (std::int64_t w = 0; w < width; ++w)
        for (std::int64_t c = 0; c < channels; ++c) {
          const std::int64_t y = h + down, x = (mirrored ? width - 1 - w : w) + right;
          const bool inside = y >= 0 && y < height && x >= 0 && x < width;
          const auto source =
              static_cast<std::size_t>(((n * height + y) * width + x) * channels + c);
          const double pixel = inside ? images.pixels[source] : 0;
          const auto channel = static_cast<std::size_t>(c);
          result.push_back((pixel / 255 - normalization.mean[channel]) /
                           normalization.stddev[channel]);
        }
  }
  return result;
}

/// Roundings of pixel · scale + shift and of scale and shift themselves.
constexpr double kRoundings = 4;

TEST(Augment, MatchesThePixelwiseReference) {
  const NormalizeOptions one_channel{.mean = {0.3}, .stddev = {0.35}};
  for (const auto& [shape, normalization] :
       {std::pair{Shape{40, 5, 7, 3}, kThreeChannels}, std::pair{Shape{40, 6, 4, 1}, one_channel}})
    for (const int crop_pad : {0, 2, 9})  // 9: whole images are shifted out of view
      for (const bool flip : {false, true}) {
        const Images images = make_images(shape);
        const AugmentOptions options{.crop_pad = crop_pad, .flip = flip, .seed = 3};
        const std::vector<double> expected = reference(images, normalization, options, 6);
        expect_close(network_input(images, normalization, options, 6), expected,
                     kRoundings * std::numeric_limits<double>::epsilon(), "float64");
        expect_close(network_input(images, normalization, options, 6, DType::kF32), expected,
                     kRoundings * std::numeric_limits<float>::epsilon(), "float32");
      }
}

TEST(Augment, WithoutChangesOnlyNormalises) {
  const Images images = make_images({3, 4, 5, 3});
  EXPECT_EQ(network_input(images, kThreeChannels, AugmentOptions{}),
            network_input(images, kThreeChannels, std::nullopt));
}

TEST(Augment, DependsOnSeedStepAndSampleOnly) {
  Images images = make_images({6, 8, 8, 3});
  const AugmentOptions options{.crop_pad = 3, .flip = true, .seed = 1};
  const std::vector<double> all = network_input(images, kThreeChannels, options);
  EXPECT_EQ(all, network_input(images, kThreeChannels, options, 1, DType::kF64, 1));
  EXPECT_NE(all, network_input(images, kThreeChannels, options, 2));
  EXPECT_NE(all, network_input(images, kThreeChannels,
                               AugmentOptions{.crop_pad = 3, .flip = true, .seed = 2}));

  const std::ptrdiff_t elements = 8 * 8 * 3;
  const Images last{.shape = {1, 8, 8, 3},
                    .pixels = std::vector(images.pixels.end() - elements, images.pixels.end()),
                    .ids = {images.ids.back()}};
  EXPECT_EQ(network_input(last, kThreeChannels, options),
            std::vector(all.end() - elements, all.end()));
  images.ids[5] += 1;
  EXPECT_NE(all, network_input(images, kThreeChannels, options));
}

TEST(Augment, ReachesEveryShiftAndBothMirrorings) {
  constexpr std::int64_t kImages = 600;
  Images images{.shape = {kImages, 5, 6, 1}, .pixels = {}, .ids = {}};
  for (std::int64_t n = 0; n < kImages; ++n) {
    images.ids.push_back(static_cast<double>(n));
    for (int pixel = 1; pixel <= 30; ++pixel) images.pixels.push_back(pixel);
  }
  const std::vector<double> y = network_input(images, {.mean = {0}, .stddev = {1}},
                                              AugmentOptions{.crop_pad = 1, .flip = true});
  std::set<std::vector<double>> seen;
  for (auto image = y.begin(); image != y.end(); image += 30) seen.emplace(image, image + 30);
  EXPECT_EQ(seen.size(), 3U * 3U * 2U);
}

TEST(Normalize, RefusesNumbersThatDoNotFitTheChannels) {
  Graph graph(DType::kF32);
  const Value images = graph.input("images", {{2, 4, 4, 3}, DType::kU8});
  EXPECT_THROW(normalize(images, {.mean = {0.5}, .stddev = {0.5}}), ConfigError);
  EXPECT_THROW(normalize(images, {.mean = {0, 0, 0}, .stddev = {1, 0, 1}}), ConfigError);
  EXPECT_THROW(normalize(graph.input("floats", {{2, 4, 4, 3}, DType::kF32}), kThreeChannels),
               ConfigError);
  const Value ids = graph.input("ids", {{3}, DType::kI64});
  EXPECT_THROW(augment(images, ids, {.normalize = kThreeChannels}), ConfigError);
}

}  // namespace
}  // namespace ddp::test
