#include "core/backend/cuda/check.h"
#include "core/backend/cuda/marks.h"

namespace ddp::cuda {
namespace {

__global__ void mark(Progress* progress, Progress* host, std::uint64_t activity) {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  Progress p = *progress;
  if (p.marks > 0) p.spent[p.activity] += now - p.nanoseconds;
  ++p.marks;
  p.nanoseconds = now;
  p.activity = activity;
  *progress = p;
  host->nanoseconds = now;
  host->activity = activity;
  host->spent = p.spent;
  __threadfence_system();  // the count comes last
  host->marks = p.marks;
}

}  // namespace

Marks::Marks() {
  void* device = nullptr;
  check(cudaMalloc(&device, sizeof(Progress)), "progress marks");
  device_ = Buffer(device, sizeof(Progress), [](void* p) { cudaFree(p); });
  void* host = nullptr;
  check(cudaHostAlloc(&host, sizeof(Progress), cudaHostAllocMapped), "progress marks");
  host_ = Buffer(host, sizeof(Progress), [](void* p) { cudaFreeHost(p); });
  new (host) Progress();
  check(cudaMemset(device, 0, sizeof(Progress)), "cudaMemset");
}

void Marks::enter(Activity activity, void* stream) {
  // With unified addressing the host's address is the GPU's.
  mark<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(reinterpret_cast<Progress*>(device_.data()),
                                                       reinterpret_cast<Progress*>(host_.data()),
                                                       static_cast<std::uint64_t>(activity));
  check_launch("mark");
}

PhaseTimes Marks::times() const {
  const auto* progress = reinterpret_cast<const volatile Progress*>(host_.data());
  std::array<double, kActivityCount> seconds{};
  for (std::size_t i = 0; i < kActivityCount; ++i)
    seconds[i] = static_cast<double>(const_cast<const Progress*>(progress)->spent[i]) * 1e-9;
  return phase_times_of(seconds);
}

}  // namespace ddp::cuda
