// Weight files of a run: parameters by name, and in the metadata what is needed to use them: model,
// classes, input shape and normalisation. Nothing in them changes from run to run, so equal weights
// are equal files.
#pragma once

#include <filesystem>
#include <string>

#include "core/train/parameters.h"
#include "launcher/setup.h"

namespace ddp {

struct WeightsInfo {
  std::string model;
  std::string model_text;  ///< of a model that is a text file
  std::string stem = "auto";
  DataFacts data;
};

/// Writes all parameters that `memory` holds. StorageError.
void save_weights(const std::filesystem::path& path, const WeightsInfo& info,
                  const Program& program, Backend& backend, const MemoryMap& memory);

/// What a weight file says of itself; StorageError when it does not say it, or says it badly.
WeightsInfo weights_info(const SafetensorsFile& file, const std::filesystem::path& path);

/// The name of the first tensor, in the order of the file, with a NaN or an infinity; empty when
/// there is none.
std::string first_not_finite(const SafetensorsFile& file);

}  // namespace ddp
