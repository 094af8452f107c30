// SIGUSR1 asks for an orderly stop. It is blocked before any thread starts, taken by one waiting
// thread, and becomes a flag that the training loop turns into a vote: ranks stop together, at the
// same step.
#pragma once

#include <atomic>
#include <thread>

namespace ddp {

class StopSignal {
 public:
  /// Blocks the signal for this thread and all it will start. Make it before MPI and the first
  /// thread.
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  const std::atomic<bool>& requested() const { return requested_; }

 private:
  std::atomic<bool> requested_ = false, ending_ = false;
  std::thread thread_;
};

}  // namespace ddp
