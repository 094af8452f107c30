#include "core/backend/cuda_backend.h"

#include <algorithm>

#include "core/backend/cuda/device.h"
#include "core/backend/cuda/marks.h"

#include <nccl.h>

namespace ddp::cuda {
namespace {

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const Options& options)
      : device_(options.ordinal), options_(options), free_at_start_(gpu_memory().free_bytes) {}

  BackendKind kind() const override { return BackendKind::kCuda; }
  std::string device_name() const override {
    return fmt::format("{} (GPU {})", device_.name(), device_.ordinal());
  }
  KernelContext kernel_context() const override {
    return {.gpu = &device_, .tf32 = options_.tf32, .deterministic = options_.deterministic};
  }
  Buffer allocate(std::size_t bytes) override {
    if (bytes == 0) return {};
    void* memory = nullptr;
    check(cudaMalloc(&memory, bytes), fmt::format("{} bytes", bytes));
    Buffer buffer(memory, bytes, [](void* p) { cudaFree(p); });
    check(cudaMemsetAsync(memory, 0, bytes, device_.compute().handle()), "cudaMemset");
    return buffer;
  }
  Stream& compute() override { return device_.compute(); }
  std::unique_ptr<Event> make_event() override { return std::make_unique<CudaEvent>(); }
  void enter(Activity activity) override { marks_.enter(activity, device_.compute().handle()); }
  PhaseTimes phase_times() const override { return marks_.times(); }
  void upload(void* device, const void* host, std::size_t bytes) override {
    check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, device_.compute().handle()),
          "a copy to the GPU");
  }
  void download(void* host, const void* device, std::size_t bytes) override {
    check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, device_.compute().handle()),
          "a copy from the GPU");
    device_.compute().synchronize();
  }
  bool is_asynchronous() const override { return true; }
  Buffer pin(std::span<std::byte> memory) override {
    check(cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterDefault), "pinned memory");
    return {memory.data(), memory.size(), [](void* p) { cudaHostUnregister(p); }};
  }
  Stream& copies() override { return copies_; }
  void copy_ahead(void* device, const void* host, std::size_t bytes) override {
    check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, copies_.handle()),
          "a copy to the GPU");
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, device_.compute().handle()),
          "a copy on the GPU");
  }
  std::optional<std::size_t> reserved_bytes() const override {
    const std::size_t now_free = gpu_memory().free_bytes;
    return free_at_start_ - std::min(free_at_start_, now_free);
  }
  std::string library_versions() const override {
    int runtime = 0, nccl = 0;
    check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    ncclGetVersion(&nccl);
    return fmt::format("CUDA {}, cuDNN {}, cuBLASLt {}, NCCL {}, {}", version_text(runtime),
                       cudnnGetVersion(), cublasLtGetVersion(), nccl, device_.name());
  }

 private:
  mutable Device device_;  // kernels enqueue work and tune with it while plans are built
  Options options_;
  std::size_t free_at_start_;
  CudaStream copies_;
  Marks marks_;
};

}  // namespace

bool is_built() { return true; }

std::vector<GpuInfo> visible_gpus() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver) {
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0) return {};
    throw DeviceError(
        "the NVIDIA driver supports CUDA up to {}, this program was built with {}: install a newer "
        "driver, or build with a "
        "CUDA Toolkit that the driver supports",
        version_text(driver), version_text(runtime));
  }
  if (status == cudaErrorNoDevice) return {};
  check(status, "cudaGetDeviceCount");
  std::vector<GpuInfo> gpus;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp p{};
    check(cudaGetDeviceProperties(&p, i), "cudaGetDeviceProperties");
    std::string uuid = "GPU-";
    for (std::size_t byte = 0; byte < sizeof(p.uuid.bytes); ++byte)
      uuid += fmt::format("{}{:02x}", byte == 4 || byte == 6 || byte == 8 || byte == 10 ? "-" : "",
                          static_cast<unsigned char>(p.uuid.bytes[byte]));
    gpus.push_back({.ordinal = i,
                    .name = p.name,
                    .uuid = uuid,
                    .major = p.major,
                    .minor = p.minor,
                    .total_bytes = p.totalGlobalMem});
  }
  return gpus;
}

std::string why_no_gpu() {
  int driver = 0;
  cudaDriverGetVersion(&driver);
  if (driver == 0) return "no NVIDIA driver is loaded";
  return "the driver shows no GPU (CUDA_VISIBLE_DEVICES, or the container, may hide it)";
}

std::unique_ptr<Backend> make_backend(const Options& options) {
  return std::make_unique<CudaBackend>(options);
}

GpuMemory gpu_memory() {
  GpuMemory memory;
  check(cudaMemGetInfo(&memory.free_bytes, &memory.total_bytes), "cudaMemGetInfo");
  return memory;
}

}  // namespace ddp::cuda
