// MpiAttendance: counts milestones by empty messages, on a communicator of its own. Ranks write to
// rank 0 only, so that a job of n ranks sends 2n messages a milestone.
#pragma once

#include <vector>

#include "comm/mpi/mpi_transport.h"

namespace ddp::comm {

class MpiAttendance final : public Attendance {
 public:
  explicit MpiAttendance(MpiSession& session)
      : group_(session), milestones_(static_cast<std::size_t>(session.size())) {}
  void arrive() override;
  std::vector<int> missing(int ahead) override;

 private:
  int& milestones_of(int rank) { return milestones_[static_cast<std::size_t>(rank)]; }
  void tell(int rank);
  void listen();

  MpiGroup group_;
  std::vector<int> milestones_;  ///< by rank, as far as heard
};

}  // namespace ddp::comm
