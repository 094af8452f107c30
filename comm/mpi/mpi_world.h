// World over MPI, for the launcher. It has MPI communicators of its own, so that its calls never
// mix with gradients.
#pragma once

#include <memory>

#include "comm/mpi/session.h"
#include "core/comm/world.h"

namespace ddp::comm {

/// Collective. A world of one rank when the session does not use MPI. `session` must outlive it.
std::unique_ptr<World> make_mpi_world(MpiSession& session);

}  // namespace ddp::comm
