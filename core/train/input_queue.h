// InputQueue: micro-batches on their way from the loader to the inputs of a plan. On a GPU the next
// one is copied from pinned memory by a stream of its own while the current one is computed; on the
// CPU there is one copy, just before it is needed. Used by the trainer and the evaluator.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "core/data/loader.h"
#include "core/plan/executor.h"

namespace ddp {

/// Copies one micro-batch into the inputs of an executor.
void upload(const MicroBatch& batch, Backend& backend, const Executor& executor);

class InputQueue {
 public:
  /// For plans whose inputs are those of `plan`. Pins the memory of `loader`. All three must
  /// outlive the queue.
  InputQueue(Backend& backend, Loader& loader, const Plan& plan);
  /// Waits for copies that still read the loader's memory.
  ~InputQueue();

  /// Takes the next micro-batch of the loader and starts copying it; not more than one ahead. Waits
  /// for the loader.
  void prefetch();
  /// Puts the micro-batch of the last prefetch() into the inputs of `executor`, in the order of the
  /// compute stream. It is returned as the host has it, valid until the next prefetch().
  const MicroBatch& feed(const Executor& executor);

 private:
  /// Device memory for one micro-batch, laid out as the inputs of the plan.
  struct Slot {
    Buffer memory;
    std::unique_ptr<Event> copied, consumed;
  };

  Backend& backend_;
  Loader& loader_;
  const Plan& plan_;
  std::vector<Buffer> pins_;
  std::array<Slot, 2> slots_;  ///< without memory where the host copies at once
  std::size_t next_ = 0;       ///< slot of the next prefetch
  const MicroBatch* batch_ = nullptr;
};

}  // namespace ddp
