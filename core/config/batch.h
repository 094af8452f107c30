// The three sizes of a batch. global = ranks x micro x accum always holds; any two of them, one, or
// none may be asked for, and the rest follows. resolve() calls this for a run, `ddptrain plan`
// without a data set.
#pragma once

#include <cstdint>

#include "core/config/configuration.h"

namespace ddp {

struct BatchSizes {
  std::int64_t global = 0;  ///< samples of one optimizer step
  std::int64_t micro = 0;   ///< samples of one forward and backward pass on one rank
  std::int64_t accum = 0;   ///< micro-batches of one optimizer step on one rank
  bool operator==(const BatchSizes&) const = default;
};

/// Derives the sizes that are not set: accum is global / (ranks x micro), or 1; global is the
/// product, or the multiple of ranks x accum nearest to 128. ConfigError with the nearest legal
/// values if the set ones do not fit together.
BatchSizes resolve_batch(const Configuration& configuration, int ranks);

}  // namespace ddp
