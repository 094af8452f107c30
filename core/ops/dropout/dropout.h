// Dropout (Srivastava et al., JMLR 2014), inverted: kept elements are scaled by 1 / (1 - p). The
// mask is a function of (seed, instance, step, sample id, element), so it is the same for any
// number of ranks and is recomputed in the backward pass instead of being stored. Training models
// call it; evaluation models leave it out.
#pragma once

#include <string>

#include "core/graph/graph.h"

namespace ddp {

struct DropoutOptions {
  std::string name = {};     ///< "dropout<n>" when empty
  double probability = 0.5;  ///< of an element to become zero, in [0, 1)
  std::int64_t instance =
      0;  ///< tells apart the dropouts of a model, so that their masks are independent
  std::uint64_t seed = 0;
};

/// x: [N, …], sample_ids: [N] I64. Probability 0 returns x itself. Throws ConfigError when
/// probability or shapes are not legal.
Value dropout(Value x, Value sample_ids, const DropoutOptions& options);

}  // namespace ddp
