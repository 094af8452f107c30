// Comparison of the configurations of all ranks: ranks that train with different settings would
// diverge or hang, so the start-up compares them and says what differs.
#pragma once

#include <span>
#include <string>

namespace ddp {

/// Takes each rank's TrainConfig::SerializeAsString(), by rank, as World::gather() returns them.
/// One line for each field that differs, with all values and their ranks; empty if the ranks agree:
///   model: "mlp" on rank 0; "convnet" on ranks 1-3
/// Fields marked per_rank may differ. A field that is not set and has no default is "unset".
std::string describe_differences(std::span<const std::string> serialized_by_rank);

}  // namespace ddp
