// DeviceTable: a constant table in device memory, uploaded by a kernel factory and owned by the
// kernel that reads it.
#pragma once

#include <memory>
#include <vector>

#include "core/backend/cuda/device.h"

namespace ddp::cuda {

template <class T>
class DeviceTable {
 public:
  DeviceTable(Device& device, const std::vector<T>& entries) {
    const std::size_t bytes = entries.size() * sizeof(T);
    void* memory = nullptr;
    check(cudaMalloc(&memory, bytes), fmt::format("a table of {} bytes", bytes));
    memory_ = std::make_shared<const Buffer>(memory, bytes, [](void* p) { cudaFree(p); });
    check(cudaMemcpyAsync(memory, entries.data(), bytes, cudaMemcpyHostToDevice,
                          device.compute().handle()),
          "a copy to the GPU");
    device.compute().synchronize();
  }
  /// Valid on the GPU while a copy of this table exists.
  const T* data() const { return reinterpret_cast<const T*>(memory_->data()); }

 private:
  std::shared_ptr<const Buffer> memory_;
};

}  // namespace ddp::cuda
