// Where a rank computes: the choice between GPU and CPU, which GPU each rank gets, and the
// precision that follows. The decision is a pure function of what all ranks see, so that all of
// them make the same one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/backend/cuda_backend.h"
#include "core/config/configuration.h"
#include "launcher/job.h"
#include "launcher/placement.h"

namespace ddp {

/// What one rank sees of its host.
struct RankSight {
  std::string host;
  int local_rank = 0;
  std::vector<cuda::GpuInfo> gpus;
  std::string
      trouble;  ///< why the GPUs cannot be used, a sentence; empty: they can, or there are none
  std::string why_none;  ///< of an empty list: cuda::why_no_gpu()
};

struct DeviceDecision {
  BackendKind kind = BackendKind::kCpu;
  std::vector<int> ordinals;  ///< by rank, of its own list of GPUs; empty on the CPU
  std::string precision;      ///< resolved
  std::string note;           ///< why it is the CPU where nobody said so; empty otherwise
  std::vector<std::string> warnings;
};

/// `device` and `precision` are the values of these flags; `precision` is empty when it is not
/// given. ConfigError when the two exclude each other; DeviceError when a GPU is needed and a rank
/// has none for itself, naming ranks, host and remedy.
DeviceDecision decide_device(const std::vector<RankSight>& ranks, const std::string& device,
                             const std::string& precision);

struct Device {
  ThreadPlacement placement;
  std::unique_ptr<Backend> backend;
  std::string note;
};
/// Collective. Places the threads, chooses the backend, fills job.places, and puts the precision
/// into the configuration. AgreedFailure (exit 4) when the device that was asked for is not there.
Device choose_device(Job& job, Configuration& configuration);

/// Type of activations: "bf16" -> BF16, "fp64" -> F64, otherwise F32.
DType compute_type(const std::string& precision);

}  // namespace ddp
