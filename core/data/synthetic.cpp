#include "core/data/synthetic.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/philox.h"

namespace ddp {

namespace {

// A pattern is 4 x 4 cells a channel: coarse enough to survive augmentation by shifts of a few
// pixels.
constexpr std::int64_t kCells = 4;
constexpr int kDefaultClasses = 10;

std::uint8_t byte_of(const PhiloxBlock& block, std::int64_t i) {
  return static_cast<std::uint8_t>(block[static_cast<std::size_t>(i / 4)] >> (8 * (i % 4)));
}

/// Random bytes of `sample`, from block 1 on (block 0 is for the label).
void random_bytes(PhiloxKey key, std::int64_t sample, std::span<std::uint8_t> bytes) {
  for (std::int64_t at = 0, block = 1; at < std::ssize(bytes); at += 16, ++block) {
    const PhiloxBlock random =
        philox(key, 0, static_cast<std::uint64_t>(sample), static_cast<std::uint32_t>(block));
    const std::int64_t part = std::min<std::int64_t>(16, std::ssize(bytes) - at);
    for (std::int64_t i = 0; i < part; ++i)
      bytes[static_cast<std::size_t>(at + i)] = byte_of(random, i);
  }
}

class SyntheticDataset final : public Dataset {
 public:
  SyntheticDataset(DatasetInfo info, std::uint64_t seed, Split split)
      : info_(std::move(info)),
        noise_(philox_key(seed, RandomStream::kSynthetic, split == Split::kTrain ? 1 : 2)),
        pattern_bytes_(kCells * kCells * info_.image[2]),
        patterns_(static_cast<std::size_t>(info_.classes * pattern_bytes_)) {
    const PhiloxKey key = philox_key(seed, RandomStream::kSynthetic, 0);
    for (int c = 0; c < info_.classes; ++c) {
      random_bytes(key, c,
                   std::span(patterns_).subspan(static_cast<std::size_t>(c * pattern_bytes_),
                                                static_cast<std::size_t>(pattern_bytes_)));
    }
  }

  const DatasetInfo& info() const override { return info_; }

  std::int32_t read(std::int64_t index, std::span<std::uint8_t> image) const override {
    check_read(info_, index, image);
    const std::uint32_t random = philox(noise_, 0, static_cast<std::uint64_t>(index), 0)[0];
    const auto label =
        static_cast<std::int32_t>(uniform_below(random, static_cast<std::uint32_t>(info_.classes)));
    random_bytes(noise_, index, image);
    blend(patterns_.data() + label * pattern_bytes_, image.data());
    return label;
  }

 private:
  /// The mean of noise and pattern, pixel by pixel.
  void blend(const std::uint8_t* pattern, std::uint8_t* pixel) const {
    const std::int64_t height = info_.image[0], width = info_.image[1], channels = info_.image[2];
    for (std::int64_t y = 0; y < height; ++y) {
      const std::int64_t row = y * kCells / height * kCells;
      for (std::int64_t x = 0; x < width; ++x) {
        const std::uint8_t* cell = pattern + (row + x * kCells / width) * channels;
        for (std::int64_t c = 0; c < channels; ++c, ++pixel) {
          *pixel = static_cast<std::uint8_t>((*pixel + cell[c]) / 2);
        }
      }
    }
  }

  DatasetInfo info_;
  PhiloxKey noise_;
  std::int64_t pattern_bytes_;
  std::vector<std::uint8_t> patterns_;  // [classes, kCells, kCells, C]
};

}  // namespace

std::unique_ptr<Dataset> make_synthetic_dataset(const DatasetOptions& options, Split split) {
  DDP_CHECK(options.synthetic_size > 0, "a synthetic data set of {} samples was asked for",
            options.synthetic_size);
  DDP_CHECK(options.synthetic_image.rank() == 3 && options.synthetic_image.elements() > 0,
            "synthetic images need extents [H, W, C], not {}", options.synthetic_image.to_string());
  const std::int64_t size = options.synthetic_size;
  const auto channels = static_cast<std::size_t>(options.synthetic_image[2]);
  // A pixel is the mean of two uniform bytes: its variance, unscaled, is (256^2 - 1) / 12 / 2.
  DatasetInfo info{
      .name = "synthetic",
      .source = fmt::format("generated from seed {}", options.seed),
      .image = options.synthetic_image,
      .classes = options.classes > 0 ? options.classes : kDefaultClasses,
      .size = options.limit > 0 ? std::min(options.limit, size) : size,
      .mean = options.mean.empty() ? std::vector<double>(channels, 0.5) : options.mean,
      .stddev = options.stddev.empty() ? std::vector<double>(channels, 0.2049) : options.stddev,
      .normalisation_source =
          options.mean.empty() ? "known of the generator" : kGivenNormalisation};
  return std::make_unique<SyntheticDataset>(std::move(info), options.seed, split);
}

}  // namespace ddp
