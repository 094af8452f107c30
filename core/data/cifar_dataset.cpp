#include "core/data/cifar_dataset.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <sstream>
#include <utility>

#include "core/base/error.h"
#include "core/data/byte_source.h"
#include "core/data/labels.h"

namespace ddp {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kSide = 32;
constexpr std::int64_t kChannels = 3;
constexpr std::int64_t kPlaneBytes = kSide * kSide;
constexpr std::int64_t kImageBytes = kChannels * kPlaneBytes;
constexpr int kCoarseClasses = 20;
constexpr std::size_t kMaxNamesBytes = 1 << 16;

struct Layout {
  SetFormat format;
  const char* name;
  const char* directory;         ///< that the archive unpacks to
  const char* python_directory;  ///< the same of the version for Python, which is not read
  const char* python_file;       ///< that only the version for Python has
  std::vector<std::string> train, validation;
  const char* class_names;
  int label_bytes;  ///< of which the last is the label
  int classes;
  std::int64_t train_records, validation_records;  ///< of the set as its authors published it

  const std::vector<std::string>& files(Split split) const {
    return split == Split::kTrain ? train : validation;
  }
  std::int64_t record_bytes() const { return label_bytes + kImageBytes; }
};

const std::array<Layout, 2>& layouts() {
  static const std::array<Layout, 2> all{
      Layout{.format = SetFormat::kCifar10,
             .name = "cifar-10",
             .directory = "cifar-10-batches-bin",
             .python_directory = "cifar-10-batches-py",
             .python_file = "data_batch_1",
             .train = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                       "data_batch_4.bin", "data_batch_5.bin"},
             .validation = {"test_batch.bin"},
             .class_names = "batches.meta.txt",
             .label_bytes = 1,
             .classes = 10,
             .train_records = 50000,
             .validation_records = 10000},
      Layout{.format = SetFormat::kCifar100,
             .name = "cifar-100",
             .directory = "cifar-100-binary",
             .python_directory = "cifar-100-python",
             .python_file = "train",
             .train = {"train.bin"},
             .validation = {"test.bin"},
             .class_names = "fine_label_names.txt",
             .label_bytes = 2,
             .classes = 100,
             .train_records = 50000,
             .validation_records = 10000}};
  return all;
}

const Layout& layout_of(const ImageSet& set) {
  return *std::ranges::find(layouts(), set.format, &Layout::format);
}

bool holds_any(const Layout& layout, const fs::path& directory) {
  const auto here = [&](const std::string& file) { return is_there(directory / file); };
  return std::ranges::any_of(layout.train, here) || std::ranges::any_of(layout.validation, here);
}

void check_all_there(const Layout& layout, const fs::path& directory, Split split) {
  std::vector<std::string> missing;
  for (const std::string& file : layout.files(split))
    if (!is_there(directory / file)) missing.push_back(file);
  if (!missing.empty()) {
    throw DataError(directory.string(), "holds no {}, which {} needs; unpack its archive again",
                    fmt::join(missing, ", "), layout.name);
  }
}

/// What a file holds beside its images.
struct FileLabels {
  std::string file;
  bool gzip = false;
  std::vector<std::uint8_t> coarse, labels;
};

void append_channels_last(std::span<const std::uint8_t> planes, std::vector<std::uint8_t>& images) {
  images.resize(images.size() + kImageBytes);
  std::uint8_t* out = images.data() + images.size() - kImageBytes;
  for (std::size_t pixel = 0; pixel < kPlaneBytes; ++pixel)
    for (std::size_t channel = 0; channel < kChannels; ++channel)
      *out++ = planes[channel * kPlaneBytes + pixel];
}

/// Reads a file to its end. Its images follow those in `into`, up to `keep` of them; all its labels
/// go to `labels`. What was read before an error stays.
void read_records(const Layout& layout, const fs::path& file, std::int64_t keep, Samples& into,
                  FileLabels& labels) {
  ByteSource source(file);
  labels.file = source.file();
  labels.gzip = source.is_gzip();
  std::vector<std::uint8_t> record(static_cast<std::size_t>(layout.record_bytes()));
  const auto label_bytes = static_cast<std::size_t>(layout.label_bytes);
  std::size_t got = 0;
  while ((got = source.read(record)) == record.size()) {
    if (label_bytes > 1) labels.coarse.push_back(record[0]);
    labels.labels.push_back(record[label_bytes - 1]);
    if (into.count() < keep)
      append_channels_last(std::span(record).subspan(label_bytes), into.images);
  }
  const std::int64_t records = std::ssize(labels.labels);
  if (got > 0) {
    const std::int64_t end = records * layout.record_bytes() + static_cast<std::int64_t>(got);
    throw RecordError(labels.file, records,
                      "the file ends at {}, inside a record of {} bytes; copy or download it again",
                      byte_name(end, labels.gzip), layout.record_bytes());
  }
  if (records == 0) throw DataError(labels.file, "is empty; copy or download it again");
}

void check_coarse_labels(const Layout& layout, const FileLabels& labels) {
  check_labels(
      labels.file, labels.coarse, kCoarseClasses,
      [&](std::int64_t record) { return byte_name(record * layout.record_bytes(), labels.gzip); },
      "coarse ");
}

void check_own_labels(const Layout& layout, const FileLabels& labels, int classes) {
  check_labels(labels.file, labels.labels, classes, [&](std::int64_t record) {
    return byte_name(record * layout.record_bytes() + layout.label_bytes - 1, labels.gzip);
  });
}

void append(const FileLabels& labels, Samples& into) {
  into.labels.insert(into.labels.end(), labels.labels.begin(), labels.labels.end());
}

/// The lines of the file of class names; none when it is not there. DataError when it cannot be
/// read.
std::vector<std::string> read_class_names(const Layout& layout, const fs::path& directory) {
  std::vector<std::string> names;
  if (!is_there(directory / layout.class_names)) return names;
  std::vector<std::uint8_t> bytes(kMaxNamesBytes);
  bytes.resize(ByteSource(directory / layout.class_names).read(bytes));
  std::istringstream lines(std::string(bytes.begin(), bytes.end()));
  for (std::string line; std::getline(lines, line);) {
    std::erase(line, '\r');
    if (!line.empty()) names.push_back(line);
  }
  return names;
}

void inspect_class_names(const Layout& layout, Inspection& into) {
  std::vector<std::string>& names = into.set.class_names;
  into.attempt([&] { names = read_class_names(layout, into.set.directory); });
  if (names.empty() || std::ssize(names) == layout.classes) return;
  into.warn((into.set.directory / layout.class_names).string(),
            "names {} classes instead of {}; reports will show numbers", names.size(),
            layout.classes);
  names.clear();
}

/// Files that look as if they belonged to the set.
void find_unread_files(const Layout& layout, Inspection& into) {
  std::vector<std::string> others;
  std::error_code ignored;
  for (fs::directory_iterator it(into.set.directory, ignored), end; !ignored && it != end;
       it.increment(ignored)) {
    const std::string name = it->path().filename().string();
    if (name.ends_with(".bin") && std::ranges::count(layout.train, name) == 0 &&
        std::ranges::count(layout.validation, name) == 0)
      others.push_back(name);
  }
  if (others.empty()) return;
  std::ranges::sort(others);
  into.warn(into.set.directory.string(), "{} is not read: {} has the files {} and {} only",
            fmt::join(others, ", "), layout.name, fmt::join(layout.train, ", "),
            fmt::join(layout.validation, ", "));
}

void inspect_split(const Layout& layout, Inspection& into, Split split) {
  const ImageSet& set = into.set;
  Samples& samples = into.samples(split);
  samples.image = {kSide, kSide, kChannels};
  bool whole = into.attempt([&] { check_all_there(layout, set.directory, split); });
  for (const std::string& name : layout.files(split)) {
    const fs::path file = set.directory / name;
    if (!is_there(file)) continue;
    FileLabels labels;
    whole &= into.attempt([&] {
      read_records(layout, file, std::numeric_limits<std::int64_t>::max(), samples, labels);
    });
    into.attempt([&] { check_coarse_labels(layout, labels); });
    into.attempt([&] { check_own_labels(layout, labels, set.classes); });
    append(labels, samples);
  }
  // A file cut between two records looks whole.
  const std::int64_t published =
      split == Split::kTrain ? layout.train_records : layout.validation_records;
  if (whole && samples.count() != published) {
    into.warn(set.directory.string(), "has {} {} samples, {} as published has {}", samples.count(),
              name_of(split), layout.name, published);
  }
}

}  // namespace

std::optional<ImageSet> find_cifar(const fs::path& directory) {
  std::vector<ImageSet> found;
  for (const Layout& layout : layouts()) {
    for (const fs::path& place : {directory, directory / layout.directory}) {
      if (!holds_any(layout, place)) continue;
      found.push_back({.format = layout.format,
                       .directory = place,
                       .name = layout.name,
                       .classes = layout.classes});
      break;
    }
  }
  if (found.size() > 1) {
    throw DataError(directory.string(),
                    "holds both CIFAR-10 and CIFAR-100; give the directory of one of them");
  }
  return found.empty() ? std::nullopt : std::optional(found[0]);
}

void refuse_python_cifar(const fs::path& directory) {
  std::error_code ignored;
  for (const Layout& layout : layouts())
    for (const fs::path& place : {directory, directory / layout.python_directory})
      if (fs::is_regular_file(place / layout.python_file, ignored))
        throw DataError(place.string(),
                        "this is the Python version of {}; get the binary version, whose archive "
                        "unpacks to the folder {}",
                        layout.name, layout.directory);
}

std::string cifar_directory(std::string_view name) {
  return std::ranges::find(layouts(), name, &Layout::name)->directory;
}

std::unique_ptr<Dataset> open_cifar_dataset(const ImageSet& set, Split split, std::int64_t limit) {
  const Layout& layout = layout_of(set);
  check_all_there(layout, set.directory, split);
  Samples samples{.image = {kSide, kSide, kChannels}, .images = {}, .labels = {}};
  const std::int64_t keep = limit > 0 ? limit : std::numeric_limits<std::int64_t>::max();
  for (const std::string& name : layout.files(split)) {
    FileLabels labels;
    read_records(layout, set.directory / name, keep, samples, labels);
    check_coarse_labels(layout, labels);
    check_own_labels(layout, labels, set.classes);
    append(labels, samples);
  }
  ImageSet named = set;
  named.class_names = read_class_names(layout, set.directory);
  return make_dataset(named, std::move(samples));
}

void inspect_cifar(Inspection& into) {
  const Layout& layout = layout_of(into.set);
  inspect_split(layout, into, Split::kTrain);
  inspect_split(layout, into, Split::kValidation);
  inspect_class_names(layout, into);
  find_unread_files(layout, into);
}

}  // namespace ddp
