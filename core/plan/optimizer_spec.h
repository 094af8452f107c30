// What the optimizer does after the last micro-step, resolved from the configuration: numbers only,
// nothing derived later.
#pragma once

#include <string>

#include "core/ops/optimizer/optimizer.h"

namespace ddp {

struct OptimizerSpec {
  std::string kind = "sgd";  ///< op of the update: sgd | lars | adamw | lion
  SgdOptions sgd;
  LarsOptions lars;
  AdamWOptions adamw;
  LionOptions lion;
  double weight_decay = 0;
  bool decay_all = false;  ///< false: matrices and filters only
  double ema = 0;          ///< decay of the moving average of the weights; 0: no average
  FinishStepOptions
      finish;  ///< finish.nominal is the global batch; it divides the loss gradient too

  /// State slabs the update keeps: momentum, or two moments.
  std::size_t state_slabs() const { return kind == "adamw" ? 2 : 1; }
};

}  // namespace ddp
