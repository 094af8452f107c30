// One overload per library turns its status into an error of the program. Every CUDA call goes
// through check(); the call's own text and the place in the code stand in the sentence.
#pragma once

#include <source_location>
#include <string_view>

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

namespace ddp::cuda {

/// MemoryError when the device has no memory left, DeviceError otherwise; nothing on success.
void check(cudaError_t status, std::string_view call,
           std::source_location where = std::source_location::current());
void check(cublasStatus_t status, std::string_view call,
           std::source_location where = std::source_location::current());
void check(cudnnStatus_t status, std::string_view call,
           std::source_location where = std::source_location::current());

/// After a kernel launch: whether it could be launched.
inline void check_launch(std::string_view kernel,
                         std::source_location where = std::source_location::current()) {
  check(cudaPeekAtLastError(), kernel, where);
}

}  // namespace ddp::cuda
