#include "comm/fake/fake_cluster.h"

#include "comm/fake/fake_transport.h"
#include "comm/transport_world.h"

namespace ddp::comm {
namespace {

Failure failure_of(int rank, const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& e) {
    return {rank, e.code(), e.what()};
  } catch (const std::exception& e) {
    return {rank, ExitCode::kInternal, e.what()};
  } catch (...) {
    return {rank, ExitCode::kInternal, "an exception of unknown type"};
  }
}

}  // namespace

void FakeCluster::run(const std::function<void(World&, Communicator&)>& body) const {
  const auto small = std::make_shared<FakeBoard>(ranks_);
  const auto bulk = std::make_shared<FakeBoard>(ranks_);
  const auto failures = std::make_shared<FakeFailures>();
  const auto milestones = std::make_shared<FakeMilestones>(ranks_);
  std::mutex mutex;
  std::exception_ptr first;

  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks_; ++rank) {
    threads.emplace_back([&, rank] {
      TransportWorld world(
          std::make_unique<FakeTransport>(small, rank), std::make_unique<FakeAlarm>(failures, rank),
          std::make_unique<FakeAttendance>(milestones, rank), {rank, ranks_, "fake"});
      OrderedCommunicator communicator(std::make_unique<FakeTransport>(bulk, rank), world,
                                       chunk_bytes_);
      try {
        body(world, communicator);
      } catch (...) {
        {
          const std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
        }
        world.announce(failure_of(rank, std::current_exception()));
      }
    });
  }
  threads.clear();
  if (first) std::rethrow_exception(first);
}

}  // namespace ddp::comm
