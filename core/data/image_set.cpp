#include "core/data/image_set.h"

#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ddp {

namespace {

class MemoryDataset final : public Dataset {
 public:
  MemoryDataset(DatasetInfo info, Samples samples)
      : info_(std::move(info)), samples_(std::move(samples)) {}

  const DatasetInfo& info() const override { return info_; }

  std::int32_t read(std::int64_t index, std::span<std::uint8_t> image) const override {
    check_read(info_, index, image);
    std::memcpy(image.data(),
                samples_.images.data() + static_cast<std::size_t>(index) * image.size(),
                image.size());
    return samples_.labels[static_cast<std::size_t>(index)];
  }

 private:
  DatasetInfo info_;
  Samples samples_;
};

}  // namespace

std::int64_t Samples::count() const {
  return images.empty() ? 0 : std::ssize(images) / image.elements();
}

std::unique_ptr<Dataset> make_dataset(const ImageSet& set, Samples samples) {
  const auto channels = static_cast<std::size_t>(samples.image[2]);
  const Normalisation& normalisation = set.normalisation;
  if (normalisation.source == kGivenNormalisation && normalisation.mean.size() != channels)
    throw ConfigError(
        "{} holds images of {}, but the normalisation that is given is for {} of them; take images "
        "like those that the weights were trained on",
        set.directory.string(), count_text(samples.image[2], "channel"), normalisation.mean.size());
  DDP_CHECK(normalisation.mean.size() == channels && normalisation.stddev.size() == channels,
            "images of {} channels are normalised with {} means and {} standard deviations",
            channels, normalisation.mean.size(), normalisation.stddev.size());
  const bool named = std::ssize(set.class_names) == set.classes;
  DatasetInfo info{.name = set.name,
                   .source = set.directory.string(),
                   .image = samples.image,
                   .classes = set.classes,
                   .size = samples.count(),
                   .mean = normalisation.mean,
                   .stddev = normalisation.stddev,
                   .normalisation_source = normalisation.source,
                   .class_names = named ? set.class_names : std::vector<std::string>{}};
  return std::make_unique<MemoryDataset>(std::move(info), std::move(samples));
}

}  // namespace ddp
