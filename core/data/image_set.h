// What is known of a set of image files before they are read, and the samples once they are. The
// readers of all formats take the one and give the other; a data set in memory is made from both.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/normalisation.h"

namespace ddp {

enum class SetFormat : std::uint8_t { kIdx, kCifar10, kCifar100 };

struct ImageSet {
  SetFormat format = SetFormat::kIdx;
  std::filesystem::path directory;  ///< that holds the files themselves
  std::string name;
  /// Labels are in [0, classes); 0: one more than the largest training label, at least 2.
  int classes = 0;
  Normalisation normalisation = {};
  std::vector<std::string> class_names = {};  ///< by class; empty when unknown
};

struct Samples {
  Shape image;                       ///< [H, W, C]
  std::vector<std::uint8_t> images;  ///< [count, H, W, C]
  std::vector<std::uint8_t> labels;  ///< as many as images, or more
  std::int64_t count() const;        ///< whole images
};

/// A data set of all images of `samples`, whose labels are in range. Class names count only when
/// there is one for each class.
std::unique_ptr<Dataset> make_dataset(const ImageSet& set, Samples samples);

}  // namespace ddp
