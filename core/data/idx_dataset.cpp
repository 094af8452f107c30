#include "core/data/idx_dataset.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/data/idx.h"

namespace ddp {

namespace fs = std::filesystem;

namespace {

constexpr int kImageRank = 3;
constexpr int kLabelRank = 1;

class IdxDataset final : public Dataset {
 public:
  IdxDataset(DatasetInfo info, std::vector<std::uint8_t> images, std::vector<std::uint8_t> labels)
      : info_(std::move(info)), images_(std::move(images)), labels_(std::move(labels)) {}

  const DatasetInfo& info() const override { return info_; }

  std::int32_t read(std::int64_t index, std::span<std::uint8_t> image) const override {
    check_read(info_, index, image);
    std::memcpy(image.data(), images_.data() + static_cast<std::size_t>(index) * image.size(),
                image.size());
    return labels_[static_cast<std::size_t>(index)];
  }

 private:
  DatasetInfo info_;
  std::vector<std::uint8_t> images_, labels_;
};

/// The file of `kind` ("images-idx3-ubyte") in either spelling. A plain file wins over a .gz of the
/// same name: it is what somebody unpacked, and opens faster.
std::optional<fs::path> find_file(const fs::path& directory, Split split, const std::string& kind) {
  const std::string prefix = split == Split::kTrain ? "train-" : "t10k-";
  std::string dotted = kind;
  dotted[dotted.find('-')] = '.';
  for (const char* suffix : {"", ".gz"}) {
    for (const std::string& spelling : {kind, dotted}) {
      fs::path file = directory / (prefix + spelling + suffix);
      // A dangling link counts as there, so that opening it says what is wrong.
      std::error_code ignored;
      if (fs::exists(fs::symlink_status(file, ignored))) return file;
    }
  }
  return std::nullopt;
}

fs::path require_file(const fs::path& directory, Split split, const std::string& kind) {
  if (std::optional<fs::path> file = find_file(directory, split, kind)) return *file;
  throw DataError(directory.string(), "holds no {}-{}; the files looked for are {}",
                  split == Split::kTrain ? "train" : "t10k", kind, kIdxFileNames);
}

fs::path images_of(const IdxSet& set, Split split) {
  return require_file(set.directory, split, "images-idx3-ubyte");
}
fs::path labels_of(const IdxSet& set, Split split) {
  return require_file(set.directory, split, "labels-idx1-ubyte");
}

int classes_in(const std::vector<std::uint8_t>& labels) {
  return std::max(2, *std::max_element(labels.begin(), labels.end()) + 1);
}

void check_labels(const IdxReader& file, const std::vector<std::uint8_t>& labels, int classes) {
  const auto bad =
      std::find_if(labels.begin(), labels.end(), [&](std::uint8_t l) { return l >= classes; });
  if (bad == labels.end()) return;
  const std::int64_t record = bad - labels.begin();
  throw RecordError(file.file(), record,
                    "label {} at {} is outside 0..{}, the range of the {} classes; check the "
                    "file, or --classes",
                    *bad, file.byte_name(file.offset(record)), classes - 1, classes);
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

/// Mean and standard deviation of pixels scaled to [0, 1], from exact integer sums.
std::pair<double, double> mean_and_stddev(const ByteHistogram& histogram) {
  std::uint64_t count = 0, sum = 0, squares = 0;
  for (std::uint64_t value = 0; value < histogram.size(); ++value) {
    count += histogram[value];
    sum += histogram[value] * value;
    squares += histogram[value] * value * value;
  }
  const double mean = static_cast<double>(sum) / static_cast<double>(count);
  const double variance =
      std::max(0.0, static_cast<double>(squares) / static_cast<double>(count) - mean * mean);
  // Images of one grey value have no scale; 1 keeps the division by it harmless.
  return {mean / 255, variance > 0 ? std::sqrt(variance) / 255 : 1};
}

}  // namespace

std::unique_ptr<Dataset> open_idx_dataset(const IdxSet& set, Split split, std::int64_t limit) {
  IdxReader labels_file(labels_of(set, split), kLabelRank);
  IdxReader images_file(images_of(set, split), kImageRank);
  if (images_file.records() != labels_file.records()) {
    throw DataError(
        images_file.file(),
        "bytes 4..7 say {} images, but {} says {} labels; the two files must belong together",
        images_file.records(), labels_file.file(), labels_file.records());
  }
  if (split == Split::kValidation) {
    if (const auto file = find_file(set.directory, Split::kTrain, "images-idx3-ubyte")) {
      check_same_size(images_file, IdxReader(*file, kImageRank));
    }
  }

  std::vector<std::uint8_t> labels = labels_file.read();
  int classes = set.classes;
  if (classes == 0) {
    classes = classes_in(split == Split::kTrain
                             ? labels
                             : IdxReader(labels_of(set, Split::kTrain), kLabelRank).read());
  }
  check_labels(labels_file, labels, classes);

  // All training images count whatever the limit is, so that both splits are normalised alike.
  const bool compute = set.stddev == 0;
  ByteHistogram histogram{};
  const std::int64_t size =
      limit > 0 ? std::min(limit, images_file.records()) : images_file.records();
  std::vector<std::uint8_t> images =
      images_file.read(size, compute && split == Split::kTrain ? &histogram : nullptr);
  if (compute && split == Split::kValidation) {
    IdxReader(images_of(set, Split::kTrain), kImageRank).read(0, &histogram);
  }
  const auto [mean, stddev] =
      compute ? mean_and_stddev(histogram) : std::pair(set.mean, set.stddev);

  DatasetInfo info{.name = set.name,
                   .source = set.directory.string(),
                   .image = {images_file.extents()[1], images_file.extents()[2], 1},
                   .classes = classes,
                   .size = size,
                   .mean = {mean},
                   .stddev = {stddev}};
  return std::make_unique<IdxDataset>(std::move(info), std::move(images), std::move(labels));
}

}  // namespace ddp
