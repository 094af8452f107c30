#include "core/data/dataset.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

#include "core/base/error.h"
#include "core/data/idx_dataset.h"
#include "core/data/synthetic.h"

namespace ddp {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFashionMnistDirectory = "/usr/share/datasets/fashion-mnist";

/// Where the Debian package puts it, unless the environment variable DDPTRAIN_DATA names the folder
/// of data sets.
IdxSet fashion_mnist() {
  const char* variable = std::getenv("DDPTRAIN_DATA");
  const std::string data_sets = variable ? variable : "";
  const fs::path directory =
      data_sets.empty() ? fs::path(kFashionMnistDirectory) : fs::path(data_sets) / "fashion-mnist";
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) {
    throw DataError(
        directory.string(),
        "the data set fashion-mnist is not there{}; install it with 'apt-get install "
        "dataset-fashion-mnist', or take other images with '--data DIR' (a directory with MNIST "
        "idx files) or '--data synthetic'",
        data_sets.empty() ? "" : " (the environment variable DDPTRAIN_DATA points there)");
  }
  return {.directory = directory,
          .name = "fashion-mnist",
          .classes = 10,
          .mean = 0.2860,
          .stddev = 0.3530};
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return text;
}

IdxSet idx_directory(const std::string& data) {
  const fs::path directory = data;
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    throw DataError(data,
                    "{}; --data takes fashion-mnist, synthetic, or a directory with the files {}",
                    error ? error.message() : "is not a directory", kIdxFileNames);
  }
  // "data/mnist/" and "." have a last component only after this.
  const fs::path normal = (fs::absolute(directory) / "").lexically_normal().parent_path();
  IdxSet set{.directory = directory, .name = normal.filename().string()};
  const std::string name = lower_case(set.name);
  if (name.find("mnist") != std::string::npos && name.find("fashion") == std::string::npos) {
    set.mean = 0.1307;
    set.stddev = 0.3081;
  }
  return set;
}

}  // namespace

void check_read(const DatasetInfo& info, std::int64_t index, std::span<const std::uint8_t> image) {
  DDP_CHECK(index >= 0 && index < info.size, "sample {} of {} was asked for", index, info.size);
  DDP_CHECK(std::ssize(image) == info.image.elements(),
            "an image of {} bytes is read into {} bytes", info.image.elements(), image.size());
}

std::unique_ptr<Dataset> open_dataset(const DatasetOptions& options, Split split) {
  if (options.data == "synthetic") return make_synthetic_dataset(options, split);
  IdxSet set = options.data == "fashion-mnist" ? fashion_mnist() : idx_directory(options.data);
  if (options.classes > 0) set.classes = options.classes;
  if (!options.mean.empty()) {
    DDP_CHECK(options.mean.size() == 1 && options.stddev.size() == 1,
              "images of 1 channel are normalised with {} means and {} standard deviations",
              options.mean.size(), options.stddev.size());
    set.mean = options.mean[0];
    set.stddev = options.stddev[0];
  }
  return open_idx_dataset(set, split, options.limit);
}

}  // namespace ddp
