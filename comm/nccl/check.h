// The status of NCCL's calls as an error of the program, with NCCL's own text.
#pragma once

#include <source_location>
#include <string_view>

#include <nccl.h>

namespace ddp::comm {

/// CommunicationError unless `status` is ncclSuccess. `handle` is the communicator that the call
/// was about, if there was one.
void check_nccl(ncclResult_t status, std::string_view call, ncclComm_t handle = nullptr,
                std::source_location where = std::source_location::current());

/// Of the library that is loaded, which may be another than the one of the headers: 22809.
int nccl_version();

}  // namespace ddp::comm
