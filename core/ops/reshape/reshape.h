// The same elements under another shape. A view: the plan gives output and input one memory and
// runs no kernel. Models call it between convolutions and matrices.
#pragma once

#include <optional>
#include <string>

#include "core/graph/graph.h"

namespace ddp {

/// `x` as `shape`, which must have as many elements. Throws ConfigError otherwise. The op is called
/// `name`, or "reshape<n>".
Value reshape(Value x, const Shape& shape, const std::string& name = {});

/// [N, …] -> [N, product of the rest].
Value flatten(Value x, const std::string& name = {});

/// The shape [N, H, W, C] of the images whose flattening is `x`, possibly with ops in between that
/// leave every column where it is (dropout, relu). Columns of such matrices stand in the order H,
/// W, C in memory and C, H, W in files: layers with a parameter for each column declare that.
std::optional<Shape> flattened_image(Value x);

}  // namespace ddp
