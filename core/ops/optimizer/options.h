// Options of the slab ops read back from their attributes, for kernel factories.
#pragma once

#include "core/graph/attributes.h"
#include "core/ops/optimizer/optimizer.h"

namespace ddp {

FinishStepOptions finish_step_options(const Attributes& attributes);
SgdOptions sgd_options(const Attributes& attributes);
LarsOptions lars_options(const Attributes& attributes);
AdamWOptions adamw_options(const Attributes& attributes);
LionOptions lion_options(const Attributes& attributes);

}  // namespace ddp
