// How many blocks of a kernel the GPU runs at once: kernels whose threads keep something between
// rows, or leave partial sums behind, have no more blocks than that. Included by .cu files only.
#pragma once

#include <algorithm>

#include "core/backend/cuda/device.h"

namespace ddp::cuda {

template <class Function>
int resident_blocks(const Device& gpu, Function* kernel, int threads) {
  int blocks = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, 0),
        "the occupancy of a kernel");
  return std::max(blocks, 1) * gpu.multiprocessors();
}

}  // namespace ddp::cuda
