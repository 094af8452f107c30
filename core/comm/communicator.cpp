#include "core/comm/communicator.h"

#include <chrono>
#include <thread>

namespace ddp {

void wait_for(Event& event, const Communicator* communicator) {
  // A step of a GPU takes milliseconds: looking this often costs nothing that is needed.
  constexpr std::chrono::microseconds kPause{20};
  if (communicator == nullptr) return event.wait();
  for (; !event.done(); std::this_thread::sleep_for(kPause)) communicator->check();
}

}  // namespace ddp
