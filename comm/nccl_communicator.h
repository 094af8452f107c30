// The communicator over NCCL as the rest of the program sees it, without headers of NCCL or CUDA.
// It works on the memory of a CUDA backend. In a build without CUDA, asking for one is an error.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/comm/communicator.h"
#include "core/comm/world.h"

namespace ddp::comm {

struct NcclOptions {
  /// Sums are the same bytes in every run: NCCL_ALGO=Ring, and no windows.
  bool deterministic = false;
  /// Registers symmetric memory with NCCL, where NCCL has faster kernels for it.
  bool windows = true;
  /// Of each stage of the start: all ranks there, connected, the first sums.
  int init_timeout_seconds = 60;
  /// Where each rank runs ("gpu-07, NVIDIA H200 (GPU 1)"), for sentences; may be empty.
  std::vector<std::string> places;
};

/// Collective. Connects all ranks and tries the connections with sums whose results are checked.
/// `world` and `backend` must outlive the communicator. AgreedFailure (exit 2 or 6) when the
/// environment contradicts `options` or the ranks have different versions of NCCL;
/// CommunicationError that names the ranks which did not arrive in time. With one rank it is a
/// communicator that cannot post.
///
/// Before it is destroyed, captured graphs that hold its collectives must be. Its destructor takes
/// a few seconds at most, whatever the other ranks do.
std::unique_ptr<Communicator> make_nccl_communicator(World& world, Backend& backend,
                                                     const NcclOptions& options);

/// Collective, before the first step. Device memory for collectives of `communicator`, zeroed,
/// aligned to 4096 bytes, of equal size on all ranks: NCCL's own where it has some, otherwise (and
/// for other communicators) the backend's. It may be freed before or after the communicator; after
/// a failure it is not freed, since a collective may still write to it.
Buffer allocate_symmetric(Communicator& communicator, Backend& backend, std::size_t bytes);

/// For a rank that leaves with an error: aborts collectives in flight, waiting about a second at
/// most. Without it, freeing device memory waits for them for ever. Does nothing to other
/// communicators.
void abandon(Communicator& communicator) noexcept;

}  // namespace ddp::comm
