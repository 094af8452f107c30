// OrderedCommunicator: a Communicator for host memory over any Transport. One progress thread takes
// the posted collectives in order, waits for `after`, lets the ranks compare signatures, and only
// when all agree exchanges the data. It never waits for a rank that has announced a failure, and
// never longer than its own life.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/transport.h"
#include "core/comm/communicator.h"

namespace ddp::comm {

/// Data travels in exchanges of at most this size, since MPI counts are 32-bit.
inline constexpr std::size_t kChunkBytes = std::size_t{1} << 30;

class OrderedCommunicator final : public Communicator {
 public:
  /// `world` tells of failures of other ranks and must outlive the communicator. `chunk_bytes` is
  /// equal on all ranks.
  OrderedCommunicator(std::unique_ptr<Transport> transport, const World& world,
                      std::size_t chunk_bytes = kChunkBytes);
  /// Gives up work in flight and completes its events.
  ~OrderedCommunicator() override;
  OrderedCommunicator(const OrderedCommunicator&) = delete;
  OrderedCommunicator& operator=(const OrderedCommunicator&) = delete;

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }
  /// All-reduce takes F32, F64 and I64, broadcast any dtype. Allocates nothing.
  void post(const Collective& collective, TensorView data, Event& after, Event& signal) override;
  /// Throws the first failure: CommunicationError when ranks disagree or MPI fails, PeerFailed when
  /// a rank announced one. Collectives posted after it complete at once without communication.
  void check() const override;

 private:
  struct Posted {
    const Collective* collective;
    TensorView data;
    Event* after;
    Event* signal;
  };
  void serve();
  void run(const Posted& posted);
  void compare_signatures(const Posted& posted);
  void exchange(const Posted& posted);
  void interrupt() const;

  std::unique_ptr<Transport> transport_;
  const World& world_;
  const std::size_t chunk_bytes_;
  std::int64_t sequence_ = 0;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Posted> queue_;
  std::atomic<bool> stopping_ = false;
  std::exception_ptr failure_;  ///< written once, before failed_
  std::atomic<bool> failed_ = false;
  std::thread thread_;
};

}  // namespace ddp::comm
