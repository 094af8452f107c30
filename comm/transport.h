// Transport: the few non-blocking exchanges of host memory from which World and Communicator are
// built, so that both mean the same over MPI and over threads of one process. One exchange is in
// flight at a time; all ranks start the same exchanges in the same order.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "comm/polling.h"
#include "core/comm/world.h"
#include "core/tensor/dtype.h"

namespace ddp::comm {

enum class Reduction { kSum, kMax };

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Each call starts one exchange and returns at once; the memory must live until test() is true.
  /// Sizes must be equal on all ranks and below 2^31 (elements of an all-reduce, bytes otherwise).

  /// In place; F32, F64 and I64.
  virtual void start_all_reduce(void* data, std::size_t elements, DType dtype,
                                Reduction reduction) = 0;
  /// `all` holds size() blocks of mine.size() bytes, by rank.
  virtual void start_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  virtual void start_broadcast(std::span<std::byte> data, int root) = 0;

  /// Advances the exchange in flight; true when this rank's part of it is complete.
  virtual bool test() = 0;
  /// Gives up the exchange in flight. The transport cannot be used afterwards.
  virtual void abandon() noexcept = 0;
};

/// Carries one failure from a rank to all others, beside all exchanges. Thread-safe.
class Alarm {
 public:
  virtual ~Alarm() = default;
  /// See World::announce and World::announced.
  virtual void announce(const Failure& failure) = 0;
  virtual std::optional<Failure> announced() = 0;
};

/// Counts the milestones of ranks, beside all exchanges. Used by one thread.
class Attendance {
 public:
  virtual ~Attendance() = default;
  /// See World::arrive and World::missing.
  virtual void arrive() = 0;
  virtual std::vector<int> missing(int ahead) = 0;
};

/// Runs one exchange to its end: `start` starts it, `interrupt` is called while it takes time and
/// ends it by throwing.
template <class Start, class Interrupt>
void run_exchange(Transport& transport, const Start& start, const Interrupt& interrupt) {
  interrupt();
  try {
    start();
    poll_until([&] { return transport.test(); }, interrupt);
  } catch (...) {
    transport.abandon();
    throw;
  }
}

}  // namespace ddp::comm
