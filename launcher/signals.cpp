#include "launcher/signals.h"

#include <pthread.h>

#include <utility>

namespace ddp {
namespace {

sigset_t signals_of_a_job() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGUSR2);
  return set;
}

}  // namespace

StopSignal::StopSignal() {
  const sigset_t set = signals_of_a_job();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this, set] { wait(set); });
}

void StopSignal::wait(const sigset_t& signals) {
  for (int signal = 0; sigwait(&signals, &signal) == 0 && !ending_;) {
    if (signal == SIGUSR1) {
      requested_ = true;
      continue;
    }
    const std::lock_guard lock(mutex_);
    if (report_) report_();
  }
}

void StopSignal::on_report_request(std::function<void()> action) {
  const std::lock_guard lock(mutex_);
  report_ = std::move(action);
}

StopSignal::~StopSignal() {
  ending_ = true;
  pthread_kill(thread_.native_handle(), SIGUSR1);
  thread_.join();
}

}  // namespace ddp
