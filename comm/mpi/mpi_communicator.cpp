#include "comm/mpi/mpi_communicator.h"

#include "comm/mpi/mpi_transport.h"
#include "comm/solo.h"

namespace ddp::comm {

std::unique_ptr<Communicator> make_mpi_communicator(MpiSession& session, const World& world,
                                                    std::size_t chunk_bytes) {
  if (!session.active()) return std::make_unique<SoloCommunicator>();
  return std::make_unique<OrderedCommunicator>(std::make_unique<MpiTransport>(session), world,
                                               chunk_bytes);
}

}  // namespace ddp::comm
