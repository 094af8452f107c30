#include "launcher/signals.h"

#include <pthread.h>

#include <csignal>

namespace ddp {
namespace {

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  return set;
}

}  // namespace

StopSignal::StopSignal() {
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this, set] {
    int signal = 0;
    while (sigwait(&set, &signal) == 0 && !ending_) requested_ = true;
  });
}

StopSignal::~StopSignal() {
  ending_ = true;
  pthread_kill(thread_.native_handle(), SIGUSR1);
  thread_.join();
}

}  // namespace ddp
