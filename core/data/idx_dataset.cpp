#include "core/data/idx_dataset.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/data/byte_source.h"
#include "core/data/idx.h"
#include "core/data/labels.h"

namespace ddp {

namespace fs = std::filesystem;

namespace {

constexpr const char* kImages = "images-idx3-ubyte";
constexpr const char* kLabels = "labels-idx1-ubyte";
constexpr int kImageRank = 3;
constexpr int kLabelRank = 1;

/// The file of `kind` ("images-idx3-ubyte") in either spelling. A plain file wins over a .gz of the
/// same name: it is what somebody unpacked, and opens faster.
std::optional<fs::path> find_file(const fs::path& directory, Split split, const std::string& kind) {
  const std::string prefix = split == Split::kTrain ? "train-" : "t10k-";
  std::string dotted = kind;
  dotted[dotted.find('-')] = '.';
  for (const char* suffix : {"", ".gz"}) {
    for (const std::string& spelling : {kind, dotted}) {
      fs::path file = directory / (prefix + spelling + suffix);
      if (is_there(file)) return file;
    }
  }
  return std::nullopt;
}

fs::path require_file(const fs::path& directory, Split split, const std::string& kind) {
  if (std::optional<fs::path> file = find_file(directory, split, kind)) return *file;
  throw DataError(directory.string(), "holds no {}-{}; the files looked for are {}",
                  split == Split::kTrain ? "train" : "t10k", kind, kIdxFileNames);
}

fs::path images_of(const ImageSet& set, Split split) {
  return require_file(set.directory, split, kImages);
}
fs::path labels_of(const ImageSet& set, Split split) {
  return require_file(set.directory, split, kLabels);
}

int classes_in(const std::vector<std::uint8_t>& labels) {
  return std::max(2, *std::max_element(labels.begin(), labels.end()) + 1);
}

void check_own_labels(const IdxReader& file, const std::vector<std::uint8_t>& labels, int classes) {
  check_labels(file.file(), labels, classes,
               [&](std::int64_t record) { return file.byte_name(file.offset(record)); });
}

void check_counts(const IdxReader& images, const IdxReader& labels) {
  if (images.records() == labels.records()) return;
  throw DataError(
      images.file(),
      "bytes 4..7 say {} images, but {} says {} labels; the two files must belong together",
      images.records(), labels.file(), labels.records());
}

void check_same_size(const IdxReader& images, const IdxReader& training) {
  if (images.extents()[1] == training.extents()[1] && images.extents()[2] == training.extents()[2])
    return;
  throw DataError(
      images.file(),
      "bytes 8..15 say images of {}x{} pixels, but those of {} have {}x{}; are they of one set?",
      images.extents()[1], images.extents()[2], training.file(), training.extents()[1],
      training.extents()[2]);
}

Shape image_shape(const IdxReader& images) { return {images.extents()[1], images.extents()[2], 1}; }

Normalisation measured(const ByteHistogram& histogram, std::int64_t images) {
  const auto [mean, stddev] = mean_and_stddev(histogram);
  // Pixels that are all equal are divided by 1, which is harmless.
  return {.mean = {mean},
          .stddev = {stddev > 0 ? stddev : 1},
          .source = fmt::format("measured over {} training images", images)};
}

/// The files of a split, as far as they can be opened.
struct SplitFiles {
  std::optional<IdxReader> images, labels;
};

void inspect_split(Inspection& into, Split split, SplitFiles& files) {
  ImageSet& set = into.set;
  Samples& samples = into.samples(split);
  auto& [images, labels] = files;
  into.attempt([&] { images.emplace(images_of(set, split), kImageRank); });
  into.attempt([&] { labels.emplace(labels_of(set, split), kLabelRank); });
  if (images && labels) into.attempt([&] { check_counts(*images, *labels); });
  if (images) {
    samples.image = image_shape(*images);
    into.attempt([&] { images->read_into(samples.images); });
  }
  if (!labels) return;
  into.attempt([&] { labels->read_into(samples.labels); });
  if (set.classes == 0 && split == Split::kTrain && !samples.labels.empty())
    set.classes = classes_in(samples.labels);
  if (set.classes > 0)
    into.attempt([&] { check_own_labels(*labels, samples.labels, set.classes); });
}

}  // namespace

bool holds_idx(const fs::path& directory) {
  for (const Split split : {Split::kTrain, Split::kValidation})
    for (const char* kind : {kImages, kLabels})
      if (find_file(directory, split, kind)) return true;
  return false;
}

std::unique_ptr<Dataset> open_idx_dataset(const ImageSet& set, Split split, std::int64_t limit) {
  IdxReader labels_file(labels_of(set, split), kLabelRank);
  IdxReader images_file(images_of(set, split), kImageRank);
  check_counts(images_file, labels_file);
  if (split == Split::kValidation) {
    if (const auto file = find_file(set.directory, Split::kTrain, kImages)) {
      check_same_size(images_file, IdxReader(*file, kImageRank));
    }
  }

  ImageSet complete = set;
  Samples samples{.image = image_shape(images_file), .images = {}, .labels = labels_file.read()};
  if (set.classes == 0) {
    complete.classes = classes_in(
        split == Split::kTrain ? samples.labels
                               : IdxReader(labels_of(set, Split::kTrain), kLabelRank).read());
  }
  check_own_labels(labels_file, samples.labels, complete.classes);

  // All training images count whatever the limit is, so that both splits are normalised alike.
  const bool measure = set.normalisation.mean.empty();
  ByteHistogram histogram{};
  std::int64_t measured_images = images_file.records();
  samples.images = images_file.read(limit > 0 ? limit : IdxReader::kAll,
                                    measure && split == Split::kTrain ? &histogram : nullptr);
  if (measure && split == Split::kValidation) {
    IdxReader training(images_of(set, Split::kTrain), kImageRank);
    training.read(0, &histogram);
    measured_images = training.records();
  }
  if (measure) complete.normalisation = measured(histogram, measured_images);
  return make_dataset(complete, std::move(samples));
}

void inspect_idx(Inspection& into) {
  SplitFiles train, validation;
  inspect_split(into, Split::kTrain, train);
  inspect_split(into, Split::kValidation, validation);
  if (train.images && validation.images)
    into.attempt([&] { check_same_size(*validation.images, *train.images); });
}

}  // namespace ddp
