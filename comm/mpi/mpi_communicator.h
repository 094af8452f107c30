// Communicator over MPI for memory of the host, for the launcher: see comm/ordered_communicator.h
// for what it guarantees.
#pragma once

#include <memory>

#include "comm/mpi/session.h"
#include "comm/ordered_communicator.h"

namespace ddp::comm {

/// Collective. `session` and `world` must outlive it. After a failure the memory of the collective
/// in flight stays in MPI's hands: leave without further training. Without MPI it is the
/// communicator of one rank, which cannot post.
std::unique_ptr<Communicator> make_mpi_communicator(MpiSession& session, const World& world,
                                                    std::size_t chunk_bytes = kChunkBytes);

}  // namespace ddp::comm
