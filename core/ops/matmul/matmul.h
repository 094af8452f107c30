// Product of two computed matrices, or of as many pairs as the outer axes count: attention scores
// and the like. A product with a weight is a linear layer.
#pragma once

#include <string>

#include "core/graph/graph.h"

namespace ddp {

struct MatmulOptions {
  std::string name = {};     ///< "matmul<n>" when empty
  bool transpose_a = false;  ///< a is [..., K, M]
  bool transpose_b = false;  ///< b is [..., N, K]
};

/// c[..., m, n] = Σ_k a[..., m, k] b[..., k, n] for a [..., M, K] and b [..., K, N] of two to five
/// axes and one type; outer axes have to be equal, nothing is broadcast. ConfigError naming the
/// extents when they do not fit.
Value matmul(Value a, Value b, const MatmulOptions& options = {});

}  // namespace ddp
