#include "comm/mpi/mpi_world.h"

#include <array>

#include <mpi.h>
#include <unistd.h>

#include "comm/mpi/mpi_alarm.h"
#include "comm/mpi/mpi_attendance.h"
#include "comm/mpi/mpi_transport.h"
#include "comm/solo.h"
#include "comm/transport_world.h"

namespace ddp::comm {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

Place place_of_this_rank() {
  Place place{.host_name = host_name()};
  MPI_Comm host = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host),
            "MPI_Comm_split_type");
  check_mpi(MPI_Comm_rank(host, &place.local_rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(host, &place.local_size), "MPI_Comm_size");
  check_mpi(MPI_Comm_free(&host), "MPI_Comm_free");
  return place;
}

}  // namespace

std::unique_ptr<World> make_mpi_world(MpiSession& session) {
  if (!session.active()) return std::make_unique<SoloWorld>(host_name());
  return std::make_unique<TransportWorld>(
      std::make_unique<MpiTransport>(session), std::make_unique<MpiAlarm>(session),
      std::make_unique<MpiAttendance>(session), place_of_this_rank());
}

}  // namespace ddp::comm
