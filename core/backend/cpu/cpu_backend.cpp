#include "core/backend/cpu/cpu_backend.h"

#include <cstring>
#include <fstream>

#include <cblas.h>

#include "core/base/text.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace ddp {

std::unique_ptr<Backend> make_cpu_backend(int threads) {
  return std::make_unique<cpu::CpuBackend>(threads);
}

namespace cpu {
namespace {

std::string processor_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "CPU";
}

}  // namespace

void HostEvent::reset() {
  const std::lock_guard lock(mutex_);
  done_ = false;
}

void HostEvent::complete() {
  // Notified under the lock: the waiter may destroy the event as soon as it sees it complete.
  const std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

bool HostEvent::done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

void HostEvent::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return done_; });
}

CpuBackend::CpuBackend(int threads) : threads_(threads) {
  DDP_CHECK(threads >= 1, "a CPU backend with {} threads", threads);
  openblas_set_num_threads(threads);
#ifdef _OPENMP
  omp_set_num_threads(threads);
#endif
}

std::string CpuBackend::device_name() const {
  return fmt::format("{}, {}", processor_model(), count_text(threads_, "thread"));
}

void CpuBackend::enter(Activity activity) {
  seconds_[static_cast<std::size_t>(activity_)] += since_entry_.lap();
  activity_ = activity;
}

PhaseTimes CpuBackend::phase_times() const { return phase_times_of(seconds_); }

void CpuBackend::upload(void* device, const void* host, std::size_t bytes) {
  std::memcpy(device, host, bytes);
}
void CpuBackend::download(void* host, const void* device, std::size_t bytes) {
  std::memcpy(host, device, bytes);
}

std::string CpuBackend::library_versions() const { return openblas_get_config(); }

}  // namespace cpu
}  // namespace ddp
