// Communicator: bulk collectives on device memory, ordered by events. One communicator carries all
// collectives of a rank, in the order in which they are posted, which the plan makes equal on all
// ranks. The interface is all that core knows of communication; comm/ implements it over MPI (CPU
// memory), NCCL, and threads of one process for tests.
#pragma once

#include <string>

#include "core/backend/backend.h"

namespace ddp {

enum class CollectiveKind : std::uint8_t { kAllReduceSum, kBroadcast };

/// One collective call. All fields must be equal on all ranks.
struct Collective {
  CollectiveKind kind = CollectiveKind::kAllReduceSum;
  int root = 0;       ///< of a broadcast
  int sequence = -1;  ///< number among the collectives of a plan, from 0; -1 outside of it
  std::string label;  ///< "bucket 2", "step state", "parameters": for messages
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Enqueues the collective in place on `data` and returns at once: it starts when `after` is
  /// complete and completes `signal`, which it resets first. Both events, the collective and the
  /// memory must live until then. Must not be called when size() is 1: there is nothing to
  /// communicate. A failure (ranks that disagree, a lost peer) completes `signal` too and is thrown
  /// by check().
  virtual void post(const Collective& collective, TensorView data, Event& after, Event& signal) = 0;

  /// Throws CommunicationError if a posted collective has failed. Called after each wait.
  virtual void check() const = 0;
};

/// Blocks the host until `event` is complete, which may depend on collectives of `communicator`
/// (null: there are none). Throws what check() throws in the meantime.
void wait_for(Event& event, const Communicator* communicator);

}  // namespace ddp
