#include "core/base/version.h"

namespace ddp {

std::string_view version() { return DDP_VERSION; }
std::string_view commit() { return DDP_COMMIT; }
std::string_view compiler() { return DDP_COMPILER; }

}  // namespace ddp
