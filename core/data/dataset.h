// A labelled image set: fixed-size uint8 images [H, W, C] and integer labels, read by index from
// any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/shape.h"

namespace ddp {

enum class Split : std::uint8_t { kTrain, kValidation };
/// "training" or "validation".
std::string_view name_of(Split split);

struct DatasetInfo {
  std::string name;    ///< "fashion-mnist", "cifar-10", "synthetic", or the directory's name
  std::string source;  ///< where it was found, for the start-up lines
  Shape image;         ///< [H, W, C]
  int classes = 0;
  std::int64_t size = 0;  ///< samples, after --limit-*
  std::vector<double> mean,
      stddev;  ///< per channel, of pixels scaled to [0, 1]; what the input is normalised with
  /// "preset of cifar-10", "measured over 60000 training images"
  std::string normalisation_source = {};
  std::vector<std::string> class_names = {};  ///< one for each class, or none when they are unknown
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const DatasetInfo& info() const = 0;
  /// Copies sample `index` into `image` (H*W*C bytes) and returns its label in [0, classes).
  /// Thread-safe. DataError names file, record and offset.
  virtual std::int32_t read(std::int64_t index, std::span<std::uint8_t> image) const = 0;
};

/// DatasetInfo::normalisation_source when DatasetOptions gave it.
inline constexpr const char* kGivenNormalisation = "as given";

/// Checks the arguments of Dataset::read (InternalError); for implementations.
void check_read(const DatasetInfo& info, std::int64_t index, std::span<const std::uint8_t> image);

struct DatasetOptions {
  std::string data =
      "fashion-mnist";     ///< name of a set, "synthetic", or a directory with idx or CIFAR files
  std::int64_t limit = 0;  ///< first N samples; 0: all
  std::int64_t synthetic_size = 0;
  Shape synthetic_image{28, 28, 1};
  int classes = 0;  ///< 0: from the data
  std::uint64_t seed = 1;
  /// Normalisation that trained weights came with, by channel of their images; empty: the set's
  /// own, which may read the training images.
  std::vector<double> mean = {}, stddev = {};
};

/// Opens and checks a data set. DataError (exit 3) with the install line and the alternatives when
/// it is not there; ConfigError when the given normalisation is for other channels.
std::unique_ptr<Dataset> open_dataset(const DatasetOptions& options, Split split);

}  // namespace ddp
