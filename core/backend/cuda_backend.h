// The CUDA backend as the rest of the program sees it: which GPUs there are, and the backend on one
// of them. Needs no CUDA headers, and is there in a build without CUDA too, where it says so.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/backend/backend.h"

namespace ddp::cuda {

/// Whether this program was built with the CUDA backend.
bool is_built();

/// One GPU that this process may use, in CUDA's order (CUDA_VISIBLE_DEVICES is applied already).
struct GpuInfo {
  int ordinal = 0;
  std::string name;          ///< "NVIDIA H200"
  std::string uuid;          ///< "GPU-…" or "MIG-…"; equal for two ranks on the same GPU
  int major = 0, minor = 0;  ///< compute capability
  std::size_t total_bytes = 0;
};

/// All of them; empty when there is no driver or no GPU. DeviceError when there is a driver, but it
/// cannot be used: too old for the CUDA runtime, or broken.
std::vector<GpuInfo> visible_gpus();

/// Why visible_gpus() is empty, as the end of a sentence: "no NVIDIA driver is loaded".
std::string why_no_gpu();

struct Options {
  int ordinal = 0;
  bool tf32 = false;           ///< F32 matrix products may use TF32
  bool deterministic = false;  ///< only algorithms that give the same bytes in every run
};

/// Makes the GPU the one of this thread and creates stream and library handles on it. DeviceError
/// when it cannot be used.
std::unique_ptr<Backend> make_backend(const Options& options);

/// Workspace that one kernel of a library may ask for at most.
inline constexpr std::size_t kWorkspaceLimit = std::size_t{256} << 20;

/// Memory of the backend's GPU: what is free, and in all. For sentences about memory.
struct GpuMemory {
  std::size_t free_bytes = 0, total_bytes = 0;
};
GpuMemory gpu_memory();

}  // namespace ddp::cuda
