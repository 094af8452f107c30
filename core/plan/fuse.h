// Fusion pass: rewrites chains of ops into one op that touches memory once. Runs after
// differentiate, so that gradient rules only know the simple forms. Values keep their ids; ops that
// were absorbed disappear.
#pragma once

#include "core/graph/graph.h"

namespace ddp {

/// conv2d|linear → bias (→ relu) becomes one op with an epilogue, and relu_backward → bias_backward
/// one pass, where no other op needs the value in between. Returns how many ops were absorbed.
int fuse_epilogues(Graph& graph);

}  // namespace ddp
