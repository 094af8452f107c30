// What the CUDA kernels of pooling with windows share: one thread gathers one pack of channels of
// one pixel of the result, from the taps of its window or from the windows over it. Numbers of
// packs fit into 31 bits, since a launch takes as few samples as that needs.
#pragma once

#include <algorithm>
#include <limits>

#include "core/backend/cuda/divisor.h"
#include "core/backend/cuda/kernel.cuh"
#include "core/ops/pool/windows.h"

namespace ddp::pool {

using cuda::Divisor;

/// PoolGeometry for the GPU.
struct Geometry {
  explicit Geometry(const PoolGeometry& g)
      : height(narrow(g.height)),
        width(narrow(g.width)),
        pooled_height(narrow(g.pooled_height)),
        pooled_width(narrow(g.pooled_width)),
        kernel(narrow(g.kernel)),
        pad(narrow(g.pad)),
        step(narrow(g.stride)),
        stride(g.stride),
        channels(g.channels) {}
  static int narrow(std::int64_t extent) {
    DDP_CHECK(extent < std::numeric_limits<int>::max() / 4, "a pooling has an extent of {}",
              extent);
    return static_cast<int>(extent);
  }

  int height, width, pooled_height, pooled_width, kernel, pad;
  int step;        ///< the stride
  Divisor stride;  ///< as well
  std::int64_t channels;

  /// Where the channels of a pixel of the image, and of the pooled image, begin.
  __device__ std::int64_t image(int n, int h, int w) const {
    return static_cast<std::int64_t>((n * height + h) * width + w) * channels;
  }
  __device__ std::int64_t pooled(int n, int h, int w) const {
    return static_cast<std::int64_t>((n * pooled_height + h) * pooled_width + w) * channels;
  }
};

/// A pack of channels, from `c` on, of pixel (h, w) of sample n.
struct Place {
  int n, h, w, c;
};

template <int N, class Gather>
__global__ void gather_kernel(int packs, Divisor packs_per_pixel, Divisor width, Divisor height,
                              Gather gather) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < packs;
       i += stride) {
    int rest = static_cast<int>(i);
    Place place{};
    place.c = packs_per_pixel.take_remainder(rest) * N;
    place.w = width.take_remainder(rest);
    place.h = height.take_remainder(rest);
    place.n = rest;
    gather(place);
  }
}

/// Runs a gather for every pack of N channels of a result of `height` x `width` pixels a sample.
/// `from(sample)` is the gather whose sample 0 is `sample`.
template <int N, class From>
void launch_gather(const PoolGeometry& g, std::int64_t height, std::int64_t width,
                   const cuda::Device& device, const From& from, cudaStream_t stream) {
  constexpr int kThreads = 256;
  const std::int64_t packs_per_pixel = g.channels / N;
  const std::int64_t larger = std::max(g.height * g.width, g.pooled_height * g.pooled_width);
  const std::int64_t most =
      std::numeric_limits<int>::max() / std::max<std::int64_t>(1, larger * packs_per_pixel);
  DDP_CHECK(most > 0, "a sample has {} pixels of {} channels", larger, g.channels);
  for (std::int64_t sample = 0; sample < g.samples; sample += most) {
    const std::int64_t samples = std::min(most, g.samples - sample);
    const std::int64_t packs = samples * height * width * packs_per_pixel;
    gather_kernel<N><<<cuda::grid_blocks(device, packs, kThreads), kThreads, 0, stream>>>(
        static_cast<int>(packs), Divisor(packs_per_pixel), Divisor(width), Divisor(height),
        from(sample));
    cuda::check_launch("pooling");
  }
}

}  // namespace ddp::pool
