// Image sets of two idx files a split, named as those of MNIST. Opening reads and checks the files
// whole; afterwards a sample is a copy from memory that cannot fail. Called by open_dataset.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "core/data/dataset.h"

namespace ddp {

/// Files accepted in a directory, for messages.
inline constexpr const char* kIdxFileNames =
    "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, "
    "t10k-labels-idx1-ubyte "
    "(also written train-images.idx3-ubyte, and with .gz)";

/// What is known of a set beforehand; the rest comes from its training files.
struct IdxSet {
  std::filesystem::path directory;
  std::string name;
  /// Labels are in [0, classes); 0: one more than the largest training label, at least 2.
  int classes = 0;
  /// Of pixels scaled to [0, 1]; stddev 0: both computed from all training images.
  double mean = 0, stddev = 0;
};

/// Opens one split and keeps its first `limit` samples (0: all). The validation split must have the
/// image size of the training images when these are there. DataError or RecordError (file, record,
/// byte) for anything wrong.
std::unique_ptr<Dataset> open_idx_dataset(const IdxSet& set, Split split, std::int64_t limit);

}  // namespace ddp
