// What the environment says to NCCL: the user's NCCL_* variables, which are respected and shown,
// and the one that deterministic training needs.
#pragma once

#include <map>
#include <string>

namespace ddp::comm {

/// NCCL_* variables by name.
using NcclVariables = std::map<std::string, std::string>;

/// Those of this process.
NcclVariables nccl_variables();

/// "NCCL_DEBUG=INFO NCCL_SOCKET_IFNAME=eth0", or "none set".
std::string describe_nccl_variables(const NcclVariables& variables);

/// The same of this process, for the log of the start.
inline std::string nccl_settings() { return describe_nccl_variables(nccl_variables()); }

/// Whether NCCL_ALGO has to be set to kDeterministicAlgorithm for sums that are the same in every
/// run; false if the user did so already. ConfigError when it holds something else.
bool needs_deterministic_algorithm(const NcclVariables& variables);
inline constexpr const char* kDeterministicAlgorithm = "Ring";

/// Sets it in this process if needed. To be called before a communicator is made, while no other
/// thread reads the environment.
void request_deterministic_algorithm();

}  // namespace ddp::comm
