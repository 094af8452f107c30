#include "core/backend/cuda/device.h"

namespace ddp::cuda {
namespace {

int selected(int ordinal) {
  check(cudaSetDevice(ordinal), "cudaSetDevice");
  return ordinal;
}

}  // namespace

CudaEvent::CudaEvent() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  handle_ = EventHandle(event);
}

bool CudaEvent::done() const {
  const cudaError_t status = cudaEventQuery(handle());
  if (status == cudaErrorNotReady) return false;
  check(status, "cudaEventQuery");
  return true;
}

void CudaEvent::wait() { check(cudaEventSynchronize(handle()), "cudaEventSynchronize"); }

CudaStream::CudaStream(int priority) {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), "cudaStreamCreate");
  handle_ = StreamHandle(stream);
}

void CudaStream::record(Event& event) {
  check(cudaEventRecord(static_cast<CudaEvent&>(event).handle(), handle()), "cudaEventRecord");
}

void CudaStream::wait_for(Event& event) {
  check(cudaStreamWaitEvent(handle(), static_cast<CudaEvent&>(event).handle()),
        "cudaStreamWaitEvent");
}

void CudaStream::synchronize() { check(cudaStreamSynchronize(handle()), "the work on the GPU"); }

Device::Device(int ordinal) : ordinal_(selected(ordinal)) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  name_ = properties.name;
  multiprocessors_ = properties.multiProcessorCount;
  cudnnHandle_t cudnn = nullptr;
  check(cudnnCreate(&cudnn), "cudnnCreate");
  cudnn_ = CudnnHandle(cudnn);
  check(cudnnSetStream(cudnn, compute_.handle()), "cudnnSetStream");
  cublasLtHandle_t cublas = nullptr;
  check(cublasLtCreate(&cublas), "cublasLtCreate");
  cublas_ = CublasLtHandle(cublas);
}

}  // namespace ddp::cuda
