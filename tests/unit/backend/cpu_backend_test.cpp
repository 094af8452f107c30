#include "core/backend/cpu/cpu_backend.h"

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace ddp::cpu {
namespace {

using std::chrono_literals::operator""ms;

TEST(HostEvent, StartsComplete) {
  HostEvent event;
  EXPECT_TRUE(event.done());
  event.wait();
}

TEST(HostEvent, IsPendingFromResetToComplete) {
  HostEvent event;
  for (int generation = 0; generation < 3; ++generation) {
    event.reset();
    EXPECT_FALSE(event.done());
    event.complete();
    EXPECT_TRUE(event.done());
    event.wait();
  }
}

TEST(HostEvent, HoldsAWaiterUntilAnotherThreadCompletesIt) {
  HostEvent event;
  event.reset();
  std::atomic<bool> written = false;
  std::jthread other([&] {
    std::this_thread::sleep_for(20ms);
    written = true;
    event.complete();
  });
  event.wait();
  EXPECT_TRUE(written);
}

TEST(HostEvent, WakesAllWaiters) {
  HostEvent event;
  event.reset();
  std::atomic<int> awake = 0;
  {
    std::vector<std::jthread> waiters;
    for (int i = 0; i < 4; ++i)
      waiters.emplace_back([&] {
        event.wait();
        ++awake;
      });
    event.complete();
  }
  EXPECT_EQ(awake, 4);
}

TEST(HostStream, ARecordedEventIsCompleteSinceWorkRunsAtOnce) {
  CpuBackend backend(1);
  const std::unique_ptr<Event> event = backend.make_event();
  event->reset();
  backend.compute().record(*event);
  EXPECT_TRUE(event->done());
}

TEST(HostStream, WorkBehindAWaitComesAfterTheEvent) {
  CpuBackend backend(1);
  HostEvent event;
  event.reset();
  int value = 0;
  std::jthread other([&] {
    std::this_thread::sleep_for(20ms);
    value = 1;
    event.complete();
  });
  backend.compute().wait_for(event);
  EXPECT_EQ(value, 1);
}

TEST(CpuBackend, CopiesBetweenHostAndDevice) {
  CpuBackend backend(1);
  std::vector<int> sent(1000), received(sent.size());
  std::iota(sent.begin(), sent.end(), 7);
  const std::size_t bytes = sent.size() * sizeof(int);
  const Buffer device = backend.allocate(bytes);
  backend.upload(device.data(), sent.data(), bytes);
  backend.download(received.data(), device.data(), bytes);
  EXPECT_EQ(received, sent);
}

TEST(CpuBackend, TellsKernelsAndPeopleItsThreads) {
  const CpuBackend backend(3);
  EXPECT_EQ(backend.kernel_context().threads, 3);
  EXPECT_TRUE(backend.device_name().ends_with(", 3 threads")) << backend.device_name();
  EXPECT_FALSE(backend.library_versions().empty());
}

TEST(CpuBackend, NeedsAThread) { EXPECT_THROW(CpuBackend(0), InternalError); }

}  // namespace
}  // namespace ddp::cpu
