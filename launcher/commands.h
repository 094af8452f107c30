// The subcommands behind the command line. Each returns the exit code or throws an Error.
#pragma once

#include <optional>
#include <string>

#include "launcher/job.h"

namespace ddp {

/// Trains, and leaves a run directory behind.
ExitCode train_command(Job& job);
/// Scores a weight file on the validation data.
ExitCode eval_command(Job& job);

struct PlanRequest {
  Configuration configuration;
  std::optional<int> ranks;  ///< default: the ranks it runs under, at least 2
  std::string json;          ///< file for --json; empty: none
};
/// Prints the plan of a rank. No data, no GPU, no other rank needed.
ExitCode plan_command(const PlanRequest& request);

/// Prints the configuration, with the origin of each value.
ExitCode config_command(const Configuration& configuration, PrintStyle style);

}  // namespace ddp
