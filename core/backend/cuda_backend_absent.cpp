// What a build without CUDA says of GPUs.
#include "core/backend/cuda_backend.h"

namespace ddp::cuda {

bool is_built() { return false; }
std::vector<GpuInfo> visible_gpus() { return {}; }
std::string why_no_gpu() { return "this program was built without CUDA"; }
std::unique_ptr<Backend> make_backend(const Options&) {
  throw DeviceError("a GPU was asked for, but {}", why_no_gpu());
}
GpuMemory gpu_memory() { return {}; }

}  // namespace ddp::cuda
