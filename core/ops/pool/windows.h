// Which elements a pooling window covers along one axis, and which windows cover an element.
// Kernels of max and average pooling use it: forward gathers elements, backward gathers windows, so
// that threads never share a result. The GPU counts in 32 bits and brings its own geometry.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/ops/pool/pool.h"

namespace ddp {

template <class Index>
struct BasicRange {
  Index begin, end;
};
using Range = BasicRange<std::int64_t>;

/// Taps of one window along one axis that lie inside the image; the window starts at `first`.
template <class Index>
constexpr BasicRange<Index> taps_inside(Index first, Index kernel, Index extent) {
  return {std::max<Index>(0, -first), std::min<Index>(kernel, extent - first)};
}

/// Pooled positions [begin, end) along one axis whose windows contain `position`. `g` has kernel,
/// stride and pad.
template <class Index, class Geometry>
constexpr BasicRange<Index> windows_over(Index position, const Geometry& g, Index pooled_extent) {
  const Index padded = position + g.pad;
  const Index begin = padded < g.kernel ? 0 : (padded - g.kernel) / g.stride + 1;
  return {begin, std::min<Index>(padded / g.stride + 1, pooled_extent)};
}

}  // namespace ddp
