#include "comm/mpi/mpi_attendance.h"

namespace ddp::comm {
namespace {

constexpr int kTag = 1;

}  // namespace

void MpiAttendance::arrive() {
  const int mine = group_.session().rank();
  if (mine != 0) {
    tell(0);
  } else {
    for (int rank = 1; rank < group_.session().size(); ++rank) tell(rank);
  }
  ++milestones_of(mine);
}

std::vector<int> MpiAttendance::missing(int ahead) {
  listen();
  const int milestone = milestones_of(group_.session().rank()) + ahead;
  const int heard = group_.session().rank() == 0 ? group_.session().size() : 1;
  std::vector<int> ranks;
  for (int rank = 0; rank < heard; ++rank) {
    if (milestones_of(rank) < milestone) ranks.push_back(rank);
  }
  return ranks;
}

void MpiAttendance::tell(int rank) {
  // Nobody waits for an empty message to be sent: there is no memory that must live until then.
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Isend(nullptr, 0, MPI_BYTE, rank, kTag, group_.handle(), &request), "MPI_Isend");
  check_mpi(MPI_Request_free(&request), "MPI_Request_free");
}

void MpiAttendance::listen() {
  while (true) {
    int arrived = 0;
    MPI_Message handle = MPI_MESSAGE_NULL;
    MPI_Status status{};
    check_mpi(MPI_Improbe(MPI_ANY_SOURCE, kTag, group_.handle(), &arrived, &handle, &status),
              "MPI_Improbe");
    if (arrived == 0) return;
    check_mpi(MPI_Mrecv(nullptr, 0, MPI_BYTE, &handle, MPI_STATUS_IGNORE), "MPI_Mrecv");
    ++milestones_of(status.MPI_SOURCE);
  }
}

}  // namespace ddp::comm
