// FakeCluster: n ranks as threads of one process, for tests. World and Communicator are those of a
// real job over another transport; sums are taken in rank order, so results have the same bits in
// every run.
#pragma once

#include <functional>

#include "comm/ordered_communicator.h"

namespace ddp::comm {

class FakeCluster {
 public:
  explicit FakeCluster(int ranks, std::size_t chunk_bytes = kChunkBytes)
      : ranks_(ranks), chunk_bytes_(chunk_bytes) {}

  /// Runs `body` once per rank, each in a thread of its own, and joins them. If it throws on a
  /// rank, that failure is announced to the others, as the launcher would; the first exception is
  /// thrown again here.
  void run(const std::function<void(World&, Communicator&)>& body) const;

 private:
  int ranks_;
  std::size_t chunk_bytes_;
};

}  // namespace ddp::comm
