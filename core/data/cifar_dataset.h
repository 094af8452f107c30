// CIFAR-10 and CIFAR-100 in their binary version (https://www.cs.toronto.edu/~kriz/cifar.html):
// files of records, each one label byte (of CIFAR-100 a coarse and a fine one, of which the fine
// one counts) and a 32x32 image of three colour planes. Opening reads and checks the files whole;
// in memory images are channels-last. Called by open_dataset and inspect_data.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/data/inspection.h"

namespace ddp {

/// The set whose files lie in `directory`, or in a folder of it with the name that the archive
/// unpacks to: format, directory, name and number of classes. DataError when both sets are there.
std::optional<ImageSet> find_cifar(const std::filesystem::path& directory);

/// DataError with what to get instead when `directory` holds the version for Python.
void refuse_python_cifar(const std::filesystem::path& directory);

/// Name of the folder that the archive of "cifar-10" or "cifar-100" unpacks to.
std::string cifar_directory(std::string_view name);

/// Opens one split and keeps its first `limit` samples (0: all). DataError or RecordError (file,
/// record, byte) for anything wrong.
std::unique_ptr<Dataset> open_cifar_dataset(const ImageSet& set, Split split, std::int64_t limit);

/// Reads both splits of into.set and lists every defect of the files.
void inspect_cifar(Inspection& into);

}  // namespace ddp
