// MpiSession: MPI from initialisation to finalisation. Made once by main, before threads that call
// MPI and after signals are blocked; it outlives everything that communicates. MPI errors are
// returned, never fatal. A program started without mpirun is a world of one rank and does not touch
// MPI.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <source_location>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace ddp::comm {

class MpiSession {
 public:
  /// Initialises MPI with MPI_THREAD_MULTIPLE if a launcher started this process. Throws
  /// CommunicationError when this MPI does not support threads.
  MpiSession();
  /// Finalises MPI, which waits for the other ranks, unless the session was given up.
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  /// The rank the launcher (mpirun, srun) gave this process, read from the environment; nothing
  /// when started alone.
  static std::optional<int> launched_rank();
  /// The number of ranks it started, from the same place; 1 when started alone.
  static int launched_size();
  static bool under_mpirun() { return launched_rank().has_value(); }

  /// Whether MPI is in use; false in a world of one that was started alone.
  bool active() const { return active_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

  /// The job fails: the destructor must not wait for the others. The process has to leave with a
  /// code other than 0. `in_flight` is memory that MPI may still write to; it is kept as long as
  /// the session.
  void give_up(std::vector<std::byte> in_flight = {});
  bool given_up() const noexcept { return given_up_; }

  /// Ends all ranks at once with `code`: the last resort, which gives them no time to say why.
  [[noreturn]] void abort(ExitCode code) noexcept;

 private:
  bool active_ = false;
  int rank_ = 0;
  int size_ = 1;
  std::atomic<bool> given_up_ = false;
  std::mutex mutex_;
  std::vector<std::vector<std::byte>> in_flight_;
};

/// Throws CommunicationError with MPI's own text unless `status` is MPI_SUCCESS:
/// check_mpi(MPI_Test(…), "MPI_Test").
void check_mpi(int status, std::string_view call,
               std::source_location where = std::source_location::current());

}  // namespace ddp::comm
