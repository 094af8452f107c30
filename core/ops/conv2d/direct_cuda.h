// Convolutions by the formula, for the shapes and precisions that cuDNN has no engine for: right
// for every geometry, the same bytes in every run, much slower than the library.
#pragma once

#include "core/ops/conv2d/conv2d.h"

namespace ddp {

/// Inputs x, filters and, with `bias`, a bias [K].
Kernel direct_conv2d(const Conv2dGeometry& g, DType dtype, bool bias, bool relu);
Kernel direct_conv2d_backward_data(const Conv2dGeometry& g, DType dtype);
Kernel direct_conv2d_backward_filter(const Conv2dGeometry& g, DType dtype);

}  // namespace ddp
