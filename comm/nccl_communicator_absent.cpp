// What a build without CUDA says of NCCL.
#include "comm/nccl_communicator.h"

namespace ddp::comm {

std::unique_ptr<Communicator> make_nccl_communicator(World&, Backend&, const NcclOptions&) {
  throw DeviceError("NCCL was asked for, but this program was built without CUDA");
}
Buffer allocate_symmetric(Communicator&, Backend& backend, std::size_t bytes) {
  return backend.allocate(bytes);
}
void abandon(Communicator&) noexcept {}

}  // namespace ddp::comm
