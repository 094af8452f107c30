#include "comm/mpi/session.h"

#include <array>
#include <cstdlib>

#include <mpi.h>
#include <unistd.h>

namespace ddp::comm {
namespace {

/// The environment variables in which a launcher tells a process its rank and their number.
struct Launcher {
  const char *rank, *size;
};
constexpr std::array kLaunchers{Launcher{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                Launcher{"PMI_RANK", "PMI_SIZE"},
                                Launcher{"SLURM_PROCID", "SLURM_NTASKS"}};

}  // namespace

void check_mpi(int status, std::string_view call, std::source_location where) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(status, text.data(), &length) != MPI_SUCCESS) length = 0;
  throw CommunicationError(
      "{} failed with error {}: {} ({}:{}); look for a lost rank or host in the log of mpirun",
      call, status, std::string_view(text.data(), static_cast<std::size_t>(length)),
      where.file_name(), where.line());
}

MpiSession::MpiSession() {
  if (!under_mpirun()) return;
  int provided = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  active_ = true;
  // Communicators inherit the handler when they are duplicated.
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
  if (provided < MPI_THREAD_MULTIPLE) {
    MPI_Finalize();
    throw CommunicationError(
        "this MPI library offers thread level {}, not MPI_THREAD_MULTIPLE; use Open MPI built with "
        "thread support",
        provided);
  }
}

MpiSession::~MpiSession() {
  if (active_ && !given_up_) MPI_Finalize();
}

std::optional<int> MpiSession::launched_rank() {
  for (const Launcher& launcher : kLaunchers)
    if (const char* value = std::getenv(launcher.rank)) return std::atoi(value);
  return std::nullopt;
}

int MpiSession::launched_size() {
  for (const Launcher& launcher : kLaunchers)
    if (const char* value = std::getenv(launcher.size)) return std::atoi(value);
  return 1;
}

void MpiSession::give_up(std::vector<std::byte> in_flight) {
  given_up_ = true;
  const std::lock_guard lock(mutex_);
  in_flight_.push_back(std::move(in_flight));
}

void MpiSession::abort(ExitCode code) noexcept {
  if (active_) MPI_Abort(MPI_COMM_WORLD, static_cast<int>(code));
  _exit(static_cast<int>(code));
}

}  // namespace ddp::comm
