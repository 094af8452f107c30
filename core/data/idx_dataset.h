// Image sets of two idx files a split, named as those of MNIST. Opening reads and checks the files
// whole; afterwards a sample is a copy from memory that cannot fail. Called by open_dataset and
// inspect_data.
#pragma once

#include <memory>

#include "core/data/inspection.h"

namespace ddp {

/// Files accepted in a directory, for messages.
inline constexpr const char* kIdxFileNames =
    "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, "
    "t10k-labels-idx1-ubyte "
    "(also written train-images.idx3-ubyte, and with .gz)";

/// Whether any of these files is in `directory`.
bool holds_idx(const std::filesystem::path& directory);

/// Opens one split and keeps its first `limit` samples (0: all). The validation split must have the
/// image size of the training images when these are there. DataError or RecordError (file, record,
/// byte) for anything wrong.
std::unique_ptr<Dataset> open_idx_dataset(const ImageSet& set, Split split, std::int64_t limit);

/// Reads both splits of into.set, finds out the number of classes when it is not known, and lists
/// every defect of the files.
void inspect_idx(Inspection& into);

}  // namespace ddp
