// Max pooling and global average pooling of images [N, H, W, C]. The maximum remembers where it
// came from, so that the backward pass needs neither input nor output. Models call the builders;
// the attributes say everything a kernel needs.
#pragma once

#include <string>

#include "core/graph/graph.h"

namespace ddp {

struct MaxPoolOptions {
  std::string name = {};  ///< "pool<n>" when empty
  int kernel = 2;         ///< height and width of the window, at most 16
  int stride = 0;         ///< 0: the kernel, so that windows touch without overlap
  int pad = 0;            ///< on each side, at most half the kernel; padding is never the maximum
};

/// Largest element of each window: [N, H, W, C] -> [N, OH, OW, C], OH = (H + 2 pad - kernel) /
/// stride + 1 rounded down. The first of equal elements gets the gradient; NaN wins over every
/// number, as in PyTorch. Throws ConfigError when the window does not fit.
Value max_pool(Value x, const MaxPoolOptions& options = {});

/// Mean over height and width: [N, H, W, C] -> [N, C].
Value global_average_pool(Value x);

/// Extents of a pooling op, taken from its attributes and its larger ("image") and smaller
/// ("pooled") tensor.
struct PoolGeometry {
  std::int64_t samples, height, width, channels, pooled_height, pooled_width;
  std::int64_t kernel, stride, pad;
};
PoolGeometry pool_geometry(const Shape& image, const Attributes& attributes);

}  // namespace ddp
