// Which elements a pooling window covers along one axis, and which windows cover an element.
// Kernels of max and average pooling use it: forward gathers elements, backward gathers windows, so
// that threads never share a result.
#pragma once

#include <algorithm>

#include "core/ops/pool/pool.h"

namespace ddp {

struct Range {
  std::int64_t begin, end;
};

/// Taps of one window along one axis that lie inside the image; the window starts at `first`.
inline Range taps_inside(std::int64_t first, std::int64_t kernel, std::int64_t extent) {
  return {std::max<std::int64_t>(0, -first), std::min(kernel, extent - first)};
}

/// Pooled positions [begin, end) along one axis whose windows contain `position`.
inline Range windows_over(std::int64_t position, const PoolGeometry& g,
                          std::int64_t pooled_extent) {
  const std::int64_t padded = position + g.pad;
  const std::int64_t begin = padded < g.kernel ? 0 : (padded - g.kernel) / g.stride + 1;
  return {begin, std::min(padded / g.stride + 1, pooled_extent)};
}

}  // namespace ddp
