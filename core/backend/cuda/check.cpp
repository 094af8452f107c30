#include "core/backend/cuda/check.h"

#include "core/base/error.h"

namespace ddp::cuda {
namespace {

template <class... Args>
[[noreturn]] void fail(std::string_view call, std::source_location where, const Args&... what) {
  int device = -1;
  cudaGetDevice(&device);
  throw DeviceError("GPU {}: {} failed ({}:{}): {}", device, call, where.file_name(), where.line(),
                    what...);
}

}  // namespace

void check(cudaError_t status, std::string_view call, std::source_location where) {
  if (status == cudaSuccess) return;
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // it is no lasting error: the device is as before
    throw MemoryError("the GPU has no memory left for {}", call);
  }
  fail(call, where, cudaGetErrorString(status));
}

void check(cublasStatus_t status, std::string_view call, std::source_location where) {
  if (status != CUBLAS_STATUS_SUCCESS) fail(call, where, cublasLtGetStatusString(status));
}

void check(cudnnStatus_t status, std::string_view call, std::source_location where) {
  if (status != CUDNN_STATUS_SUCCESS) fail(call, where, cudnnGetErrorString(status));
}

}  // namespace ddp::cuda
