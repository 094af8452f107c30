#include "core/data/find_set.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <optional>

#include "core/base/error.h"
#include "core/data/cifar_dataset.h"
#include "core/data/idx_dataset.h"
#include "core/data/known_sets.h"

namespace ddp {

namespace fs = std::filesystem;

namespace {

constexpr const char* kDataSets = "/usr/share/datasets";
constexpr std::array kNames{"fashion-mnist", "cifar-10", "cifar-100"};

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return text;
}

void use_preset(ImageSet& set, const KnownSet* known) {
  if (known == nullptr) return;
  set.class_names = known->class_names;
  set.normalisation = {.mean = known->mean,
                       .stddev = known->stddev,
                       .source = fmt::format("preset of {}", known->name)};
}

/// The set of CIFAR files in `directory` or in the folder that their archive unpacks to.
std::optional<ImageSet> cifar_set(const fs::path& directory) {
  std::optional<ImageSet> set = find_cifar(directory);
  if (set) use_preset(*set, known_set(set->name));
  return set;
}

/// DDPTRAIN_DATA; empty when it is not set.
std::string data_sets_variable() {
  const char* value = std::getenv("DDPTRAIN_DATA");
  return value != nullptr ? value : "";
}

[[noreturn]] void not_there(const fs::path& directory, const std::string& name,
                            const std::string& how) {
  throw DataError(
      directory.string(),
      "the data set {} is not there{}; {}, or take other images with '--data DIR' (a "
      "directory with MNIST idx or CIFAR binary files) or '--data synthetic'",
      name,
      data_sets_variable().empty() ? "" : " (the environment variable DDPTRAIN_DATA points there)",
      how);
}

std::string what_data_takes() {
  return fmt::format(
      "--data takes fashion-mnist, cifar-10, cifar-100, synthetic, or a directory with the binary "
      "files of CIFAR-10 or CIFAR-100 or with the files {}",
      kIdxFileNames);
}

void check_can_be_read(const fs::path& directory) {
  // The directory's own entry can be looked up only by those who may look up its files.
  std::error_code error;
  static_cast<void>(fs::status(directory / ".", error));
  if (error == std::errc::permission_denied)
    throw DataError(directory.string(), "{}; give yourself permission to read this directory",
                    error.message());
  if (!fs::is_directory(directory, error))
    throw DataError(directory.string(), "{}; {}", error ? error.message() : "is not a directory",
                    what_data_takes());
}

ImageSet named_set(const std::string& name) {
  const std::string variable = data_sets_variable();
  const fs::path folder = variable.empty() ? kDataSets : variable;
  const fs::path directory = folder / name;
  if (name == "fashion-mnist") {
    std::error_code ignored;
    if (!fs::is_directory(directory, ignored))
      not_there(directory, name, "install it with 'apt-get install dataset-fashion-mnist'");
    check_can_be_read(directory);
    ImageSet set{.directory = directory, .name = name, .classes = known_set(name)->classes};
    use_preset(set, known_set(name));
    return set;
  }
  // The archive may have been unpacked in a folder of the set's name, or beside the other sets.
  for (const fs::path& place : {directory, folder / cifar_directory(name)})
    if (std::optional<ImageSet> set = cifar_set(place); set && set->name == name) return *set;
  not_there(directory, name,
            fmt::format("get its binary version from the page of its authors and unpack the "
                        "archive there (it makes the folder {})",
                        cifar_directory(name)));
}

}  // namespace

ImageSet find_set(const std::string& data) {
  if (std::ranges::find(kNames, data) != kNames.end()) return named_set(data);
  const fs::path directory = data;
  check_can_be_read(directory);
  std::optional<ImageSet> cifar = cifar_set(directory);
  const bool idx = holds_idx(directory);
  if (cifar && idx)
    throw DataError(data, "holds both {} and MNIST idx files; give a directory with one of them",
                    cifar->name);
  if (cifar) return *cifar;
  if (!idx) {
    refuse_python_cifar(directory);
    throw DataError(data, "holds no images that ddptrain reads; {}", what_data_takes());
  }
  // "data/mnist/" and "." have a last component only after this.
  const fs::path normal = (fs::absolute(directory) / "").lexically_normal().parent_path();
  ImageSet set{.directory = directory, .name = normal.filename().string()};
  const KnownSet* known = known_set(lower_case(set.name));
  // One grey value a pixel is all that idx files hold.
  if (known != nullptr && known->mean.size() == 1) use_preset(set, known);
  return set;
}

}  // namespace ddp
