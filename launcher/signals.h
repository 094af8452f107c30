// The signals of a job: SIGUSR1 asks for an orderly stop, SIGUSR2 for a report. They are blocked
// before any thread starts and taken by one waiting thread; a stop becomes a flag that the training
// loop turns into a vote: ranks stop together, at the same step.
#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <mutex>
#include <thread>

namespace ddp {

class StopSignal {
 public:
  /// Blocks the signals for this thread and all it will start. Make it before MPI and the first
  /// thread.
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  const std::atomic<bool>& requested() const { return requested_; }
  /// What SIGUSR2 does, on the waiting thread; nothing until this is called.
  void on_report_request(std::function<void()> action);

 private:
  void wait(const sigset_t& signals);

  std::atomic<bool> requested_ = false, ending_ = false;
  std::mutex mutex_;  ///< guards report_
  std::function<void()> report_;
  std::thread thread_;
};

}  // namespace ddp
