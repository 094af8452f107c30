// Going through a whole data set to list everything that is wrong with it, instead of stopping at
// the first error as opening it does. The checks are those of the readers: each throws, and an
// inspection keeps the sentence and goes on. Behind `ddptrain data check` and `data stats`.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/data/image_set.h"

namespace ddp {

enum class Severity : std::uint8_t {
  kWarning,  ///< training works, but its result may mislead
  kError,    ///< the set cannot be trained on
};

struct Defect {
  Severity severity = Severity::kError;
  std::string sentence;  ///< opens with the file or directory, and the record where there is one
};

/// A data set as far as it can be read. With no defect of kError, both splits are complete, and
/// set.classes is the number of classes.
struct Inspection {
  ImageSet set;
  Samples train, validation;
  std::vector<Defect> defects = {};

  template <class... Args>
  void warn(const std::string& file, fmt::format_string<Args...> format, Args&&... args) {
    defects.push_back(
        {Severity::kWarning,
         fmt::format("{}: {}", file, fmt::format(format, std::forward<Args>(args)...))});
  }
  /// Runs one check; a data error that it throws becomes a defect. Returns whether it threw none.
  template <class Check>
  bool attempt(const Check& check) {
    try {
      check();
      return true;
    } catch (const Error& error) {
      if (error.code() != ExitCode::kData) throw;
      defects.push_back({Severity::kError, error.what()});
      return false;
    }
  }
  Samples& samples(Split split) { return split == Split::kTrain ? train : validation; }
};

/// Reads all files of both splits of `data` (what --data takes, except "synthetic") and lists all
/// defects: those of the files, classes without samples, images that are all the same or have two
/// labels, and validation images that are training images too. `classes` as --classes; 0: from the
/// data. DataError when there is no such set.
Inspection inspect_data(const std::string& data, int classes);

}  // namespace ddp
