// Max, average and global average pooling of images [N, H, W, C]. The maximum remembers where it
// came from, so that no backward pass needs input or output. Models call the builders; the
// attributes say everything a kernel needs.
#pragma once

#include <string>
#include <string_view>

#include "core/graph/graph.h"

namespace ddp {

struct PoolOptions {
  std::string name = {};  ///< made up when empty: "pool<n>" or "avg_pool<n>"
  int kernel = 2;         ///< height and width of the window; of max_pool at most 16
  int stride = 0;         ///< 0: the kernel, so that windows touch without overlap
  int pad = 0;            ///< on each side, at most half the kernel
};

/// Largest element of each window: [N, H, W, C] -> [N, OH, OW, C], OH = (H + 2 pad - kernel) /
/// stride + 1 rounded down. Padding is never the maximum. The first of equal elements gets the
/// gradient; NaN wins over every number, as in PyTorch. Throws ConfigError when the window does not
/// fit.
Value max_pool(Value x, const PoolOptions& options = {});

/// Mean of each window, of the same shape: the sum over kernel² elements divided by kernel², where
/// padding counts as zeros, as in PyTorch's AvgPool2d with count_include_pad=True (its default).
Value avg_pool(Value x, const PoolOptions& options = {});

/// Mean over height and width: [N, H, W, C] -> [N, C]. The op is called "average_pool<n>" without a
/// name.
Value global_average_pool(Value x, const std::string& name = {});

/// Extents of an op with windows, taken from its attributes and its larger ("image") and smaller
/// ("pooled") tensor.
struct PoolGeometry {
  std::int64_t samples, height, width, channels, pooled_height, pooled_width;
  std::int64_t kernel, stride, pad;
};
PoolGeometry pool_geometry(const Shape& image, const Attributes& attributes);

/// Shape of the pooled image. ConfigError when the windows do not fit; `kind`, "max pooling" or
/// "average pooling", is what it calls the op.
Shape pooled_shape(std::string_view kind, const OpSignature& signature);
Attributes pool_attributes(const PoolOptions& options);
/// What the backward op needs: the attributes of `op`, height and width of its image.
Attributes pool_backward_attributes(const OpRef& op);
/// Type of the image from the signature (dy, …) of a backward op.
TensorType pool_image(const OpSignature& backward);

}  // namespace ddp
