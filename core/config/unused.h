// Settings that were given but do nothing beside the others, such as --momentum for adamw: what a
// field needs is said at the field, in train.proto. The reader of configurations notes them.
#pragma once

#include <string>
#include <vector>

#include "core/config/configuration.h"

namespace ddp {

/// A sentence for each value that was asked for and that no other value makes use of.
std::vector<std::string> unused_settings(const Configuration& configuration);

}  // namespace ddp
