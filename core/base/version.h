// What this binary was built from, for --version and for the record of a run.
#pragma once

#include <string_view>

namespace ddp {

/// "0.1.0"
std::string_view version();
/// The git commit the source tree was at when the build was configured, or "unknown".
std::string_view commit();
/// "GNU 12.2.0"
std::string_view compiler();

}  // namespace ddp
