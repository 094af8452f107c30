// The one way to stdout: results are only worth something when they arrive, so every write is
// checked. All commands print through it.
#pragma once

#include <string_view>

namespace ddp {

/// Writes `text` to stdout and flushes it; StorageError (exit 7) when stdout does not take it.
void print(std::string_view text);

}  // namespace ddp
