// A yes-or-no attribute of an op: an integer that is 0 or absent for no.
#pragma once

#include <string_view>

#include "core/graph/attributes.h"

namespace ddp {

inline bool flag(const Attributes& attributes, std::string_view name) {
  return attributes.has(name) && attributes.integer(name) != 0;
}

}  // namespace ddp
