// The CPU backend: kernels compute at once on the calling thread (and its OpenMP team), so the
// compute stream is the calling thread itself. Events are real, since collectives complete on a
// progress thread.
#pragma once

#include <array>
#include <condition_variable>
#include <mutex>

#include "core/backend/backend.h"
#include "core/base/stopwatch.h"

namespace ddp::cpu {

/// Starts complete, so that waiting for an event nobody has used returns at once.
class HostEvent final : public Event {
 public:
  void reset() override;
  void complete() override;
  bool done() const override;
  void wait() override;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = true;
};

/// Work enqueued here is already done, except that of other threads.
class HostStream final : public Stream {
 public:
  void record(Event& event) override { event.complete(); }
  void wait_for(Event& event) override { event.wait(); }
  void synchronize() override {}
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(int threads);
  BackendKind kind() const override { return BackendKind::kCpu; }
  std::string device_name() const override;
  KernelContext kernel_context() const override { return {.threads = threads_}; }
  Buffer allocate(std::size_t bytes) override { return allocate_host(bytes); }
  Stream& compute() override { return stream_; }
  std::unique_ptr<Event> make_event() override { return std::make_unique<HostEvent>(); }
  void enter(Activity activity) override;
  PhaseTimes phase_times() const override;
  void upload(void* device, const void* host, std::size_t bytes) override;
  void download(void* host, const void* device, std::size_t bytes) override;
  bool is_asynchronous() const override { return false; }
  Buffer pin(std::span<std::byte>) override { return {}; }
  Stream& copies() override { return stream_; }
  void copy_ahead(void* device, const void* host, std::size_t bytes) override {
    upload(device, host, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override { upload(to, from, bytes); }
  std::optional<std::size_t> reserved_bytes() const override { return std::nullopt; }
  std::string library_versions() const override;

 private:
  int threads_;
  HostStream stream_;
  Activity activity_ = Activity::kOther;
  Stopwatch since_entry_;
  std::array<double, kActivityCount> seconds_{};
};

}  // namespace ddp::cpu
