// Waiting for something that only polling moves forward (MPI makes progress inside its calls).
// Polls in short sleeps so that a waiting thread leaves its core to compute: a blocking all-reduce
// costs the compute of a small machine 30-70 %.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace ddp::comm {

/// About 30 us of MPI_Test: what a small exchange takes when all ranks are there.
inline constexpr int kImmediatePolls = 200;
inline constexpr std::chrono::microseconds kShortestSleep{10};
inline constexpr std::chrono::microseconds kLongestSleep{100};

/// Returns when `done()` is true: polls at once for a moment, then between sleeps that grow.
/// `interrupt()` is called before each sleep and ends the wait by throwing.
template <class Done, class Interrupt>
void poll_until(const Done& done, const Interrupt& interrupt) {
  for (int poll = 0; poll < kImmediatePolls; ++poll) {
    if (done()) return;
  }
  std::chrono::microseconds sleep = kShortestSleep;
  while (!done()) {
    interrupt();
    std::this_thread::sleep_for(sleep);
    sleep = std::min(sleep * 5 / 4, kLongestSleep);
  }
}

}  // namespace ddp::comm
