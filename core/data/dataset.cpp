#include "core/data/dataset.h"

#include "core/base/error.h"
#include "core/data/cifar_dataset.h"
#include "core/data/find_set.h"
#include "core/data/idx_dataset.h"
#include "core/data/synthetic.h"

namespace ddp {

std::string_view name_of(Split split) {
  return split == Split::kTrain ? "training" : "validation";
}

void check_read(const DatasetInfo& info, std::int64_t index, std::span<const std::uint8_t> image) {
  DDP_CHECK(index >= 0 && index < info.size, "sample {} of {} was asked for", index, info.size);
  DDP_CHECK(std::ssize(image) == info.image.elements(),
            "an image of {} bytes is read into {} bytes", info.image.elements(), image.size());
}

std::unique_ptr<Dataset> open_dataset(const DatasetOptions& options, Split split) {
  if (options.data == "synthetic") return make_synthetic_dataset(options, split);
  ImageSet set = find_set(options.data);
  if (options.classes > 0) set.classes = options.classes;
  if (!options.mean.empty()) {
    set.normalisation = {
        .mean = options.mean, .stddev = options.stddev, .source = kGivenNormalisation};
  }
  return set.format == SetFormat::kIdx ? open_idx_dataset(set, split, options.limit)
                                       : open_cifar_dataset(set, split, options.limit);
}

}  // namespace ddp
