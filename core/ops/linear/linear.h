// Linear (fully connected) layer: a matrix product with a weight matrix whose rows are the units,
// and a bias.
#pragma once

#include <string>

#include "core/graph/graph.h"

namespace ddp {

struct Linear {
  std::string name;
  std::int64_t units = 0;  ///< M
  bool bias = true;
};

/// y[n,m] = Σ_k x[n,k] w[m,k], then the bias. Its parameter "<name>.weight" is [M, K] and starts
/// uniform within 1/sqrt(K), PyTorch's default. When x is a flattened image [N, H, W, C],
/// element-wise ops behind it or not, files hold the columns in the order C, H, W, as
/// channels-first programs number them. Throws ConfigError when x is no matrix.
///
/// The op "linear" also takes a third input, a bias [M], and an integer attribute "relu": then it
/// computes max(y + bias, 0) (or y + bias), for graphs that were fused after differentiation.
Value linear(Value x, const Linear& layer);

}  // namespace ddp
