// Memory of a run before it is taken: whether it fits on each rank's GPU, and if not, what takes
// how much and which flags would make it fit.
#pragma once

#include <array>

#include "core/backend/cuda_backend.h"
#include "core/plan/executor.h"
#include "core/train/program.h"
#include "launcher/job.h"

namespace ddp {

/// Bytes by region that the plans of a program need together.
using RegionBytes = std::array<std::size_t, kRegionCount>;

/// Room that a GPU must have: slabs, arena, the workspace that kernels may ask for, and what
/// communication takes.
std::size_t bytes_needed(const RegionBytes& regions);

/// Table of what takes how much, one row a line.
std::string memory_table(const RegionBytes& regions, const cuda::GpuMemory& gpu);

/// Collective. Plans the run without choosing kernels and compares with what is free on each GPU:
/// AgreedFailure (exit 5) with the table of the lowest rank where it does not fit, and the largest
/// micro-batch that would. Nothing on the CPU.
void check_that_it_fits(Job& job, const ProgramOptions& options);

}  // namespace ddp
