// Device: one GPU as kernels see it: its compute stream, the handles of the libraries, and the
// facts that decide launch sizes. Made once per rank by the backend, which outlives every kernel;
// kernel factories get it through KernelContext.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "core/backend/cuda/check.h"
#include "core/backend/cuda_backend.h"

namespace ddp::cuda {

/// Owns a library's handle. `Destroy` is the library's function; its status is ignored, since at
/// exit the driver may be gone already.
template <class Handle, auto Destroy>
class Owner {
 public:
  Owner() = default;
  explicit Owner(Handle handle) : handle_(handle) {}
  ~Owner() {
    if (handle_ != Handle{}) Destroy(handle_);
  }
  Owner(Owner&& other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
  Owner& operator=(Owner&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Handle get() const { return handle_; }

 private:
  Handle handle_{};
};
using StreamHandle = Owner<cudaStream_t, cudaStreamDestroy>;
using EventHandle = Owner<cudaEvent_t, cudaEventDestroy>;
using CudnnHandle = Owner<cudnnHandle_t, cudnnDestroy>;
using CublasLtHandle = Owner<cublasLtHandle_t, cublasLtDestroy>;

/// Completes when the stream has reached it; nobody on the host completes it.
class CudaEvent final : public Event {
 public:
  CudaEvent();
  void reset() override {}
  void complete() override {}
  bool done() const override;
  void wait() override;
  cudaEvent_t handle() const { return handle_.get(); }

 private:
  EventHandle handle_;
};

class CudaStream final : public Stream {
 public:
  /// `priority` as CUDA counts: lower is served first, 0 is the default.
  explicit CudaStream(int priority = 0);
  void record(Event& event) override;
  void wait_for(Event& event) override;
  void synchronize() override;
  cudaStream_t handle() const { return handle_.get(); }

 private:
  StreamHandle handle_;
};

/// The stream that a kernel enqueues its work on.
inline cudaStream_t stream_of(const KernelArgs& args) {
  return static_cast<CudaStream*>(args.stream)->handle();
}

class Device {
 public:
  explicit Device(int ordinal);
  int ordinal() const { return ordinal_; }
  const std::string& name() const { return name_; }
  int multiprocessors() const { return multiprocessors_; }
  CudaStream& compute() { return compute_; }
  cudnnHandle_t cudnn() const { return cudnn_.get(); }
  cublasLtHandle_t cublas() const { return cublas_.get(); }

 private:
  int ordinal_;
  std::string name_;
  int multiprocessors_ = 0;
  CudaStream compute_;
  CudnnHandle cudnn_;
  CublasLtHandle cublas_;
};

/// Blocks of a grid-stride kernel over `work` items with `threads` threads a block: as many as
/// there are items, at most 8 waves of a GPU whose multiprocessors hold 2048 threads each.
inline int grid_blocks(const Device& device, std::int64_t work, int threads) {
  const std::int64_t needed = (work + threads - 1) / threads;
  const std::int64_t most = std::int64_t{8} * device.multiprocessors() * 2048 / threads;
  return static_cast<int>(std::clamp<std::int64_t>(needed, 1, most));
}

}  // namespace ddp::cuda
