#include "comm/nccl/check.h"

#include "core/base/error.h"

namespace ddp::comm {

void check_nccl(ncclResult_t status, std::string_view call, ncclComm_t handle,
                std::source_location where) {
  if (status == ncclSuccess) return;
  const char* last = ncclGetLastError(handle);
  const bool detailed = last != nullptr && *last != '\0';
  throw CommunicationError(
      "{} failed with {} ({}:{}){}{}; NCCL_DEBUG=INFO in the environment shows what NCCL tried",
      call, ncclGetErrorString(status), where.file_name(), where.line(), detailed ? ": " : "",
      detailed ? last : "");
}

int nccl_version() {
  int version = 0;
  check_nccl(ncclGetVersion(&version), "ncclGetVersion");
  return version;
}

}  // namespace ddp::comm
