// x of batch norm as its kernels see it: samples of rows of channels.
#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"

namespace ddp {

struct ChannelExtents {
  std::int64_t samples, rows, channels;  ///< rows of one sample
};

/// Of x [N, ..., C].
inline ChannelExtents channel_extents(const TensorType& x) {
  const std::int64_t samples = x.shape[0], channels = x.shape[-1];
  return {samples, x.elements() / (samples * channels), channels};
}

}  // namespace ddp
