// What World and Communicator promise, as laws that hold for any implementation. Each is called by
// all ranks at once and checks with EXPECT; the fake cluster and the MPI program run the same list.
#pragma once

#include <vector>

#include "core/comm/communicator.h"
#include "core/comm/world.h"

namespace ddp::comm {

struct Law {
  const char* name;
  void (*holds)(World&, Communicator&);
  int least_ranks = 1;
};

/// Chunk size under which the laws run, in bytes: small, so that large collectives need several
/// exchanges.
inline constexpr std::size_t kLawChunkBytes = 4096;

/// Laws after which all ranks can go on with new communicators.
std::vector<Law> communication_laws();
/// Laws in which rank 1 announces a failure: the job ends with it.
std::vector<Law> failure_laws();

}  // namespace ddp::comm
