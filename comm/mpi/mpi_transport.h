// MpiTransport: Transport by the non-blocking collectives of MPI, on a communicator of its own so
// that nobody else's messages mix with it.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <mpi.h>

#include "comm/mpi/session.h"
#include "comm/transport.h"

namespace ddp::comm {

/// Owns a duplicate of MPI_COMM_WORLD; making one is collective. When the session was given up it
/// is not freed, since operations may still be pending on it.
class MpiGroup {
 public:
  explicit MpiGroup(MpiSession& session);
  ~MpiGroup();
  MpiGroup(const MpiGroup&) = delete;
  MpiGroup& operator=(const MpiGroup&) = delete;
  MPI_Comm handle() const { return handle_; }
  MpiSession& session() const { return session_; }

 private:
  MpiSession& session_;
  MPI_Comm handle_ = MPI_COMM_NULL;
};

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(MpiSession& session) : group_(session) {}
  int rank() const override { return group_.session().rank(); }
  int size() const override { return group_.session().size(); }
  void start_all_reduce(void* data, std::size_t elements, DType dtype,
                        Reduction reduction) override;
  void start_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  void start_broadcast(std::span<std::byte> data, int root) override;
  bool test() override;
  /// MPI cannot cancel a collective: the session is given up, and keeps the staged memory.
  void abandon() noexcept override { group_.session().give_up(std::move(staged_)); }

 private:
  std::byte* stage(std::span<std::byte> memory);

  MpiGroup group_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  /// Small exchanges work on this copy. They are the ones in which ranks wait for each other, so
  /// that they may be abandoned, and then MPI must not write to memory of callers that are gone.
  std::vector<std::byte> staged_;
  std::span<std::byte> unstaged_;  ///< where the copy goes when the exchange is complete
};

}  // namespace ddp::comm
