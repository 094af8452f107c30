// Fusion pass: rewrites chains of ops into one op that touches memory once. Runs after
// differentiate, so that gradient rules only know the simple forms. Values keep their ids; ops that
// were absorbed disappear.
#pragma once

#include "core/graph/graph.h"

namespace ddp {

/// Where no other op needs the value in between:
///   conv2d|linear → bias (→ relu)          becomes one op with an epilogue,
///   relu_backward → bias_backward          one pass,
///   batchnorm → (add →) relu               one op, in training and in evaluation graphs,
///   relu_backward → batchnorm_backward     one op, which also gives the residual branch its
///   gradient.
/// Returns how many ops were absorbed.
int fuse_epilogues(Graph& graph);

}  // namespace ddp
