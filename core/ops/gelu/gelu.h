// Gaussian error linear unit (Hendrycks and Gimpel, 2016), as PyTorch's: x times the probability
// that a standard normal number is below x, exactly or by the formula with tanh that GPT-2 uses.
#pragma once

#include <string>

#include "core/graph/graph.h"

namespace ddp {

struct GeluOptions {
  std::string name = {};             ///< "gelu<n>" when empty
  std::string approximate = "none";  ///< "none": by erf; "tanh": by tanh
};

/// none: y = x/2 (1 + erf(x/√2)); tanh: y = x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))); of the shape
/// of x. NaN passes through. Backward needs x. ConfigError for another `approximate`.
Value gelu(Value x, const GeluOptions& options = {});

}  // namespace ddp
