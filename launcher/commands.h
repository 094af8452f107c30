// The subcommands behind the command line. Each returns the exit code or throws an Error.
#pragma once

#include <optional>
#include <string>

#include "launcher/job.h"

namespace ddp {

/// Trains, and leaves a run directory behind.
ExitCode train_command(Job& job);
/// Scores a weight file on the validation data; per class, and with a confusion matrix, on request.
ExitCode eval_command(Job& job);
/// Writes what a weight file says of each sample: to a file, or to stdout without a summary.
ExitCode predict_command(Job& job);

struct PlanRequest {
  Configuration configuration;
  std::optional<int> ranks;  ///< default: the ranks it runs under, at least 2
  std::string json;          ///< file for --json; empty: none
  bool dump_model = false;   ///< print the model as text, and nothing else
};
/// Prints the plan of a rank. No data, no GPU, no other rank needed.
ExitCode plan_command(const PlanRequest& request);

struct DataRequest {
  std::string data;  ///< as --data, except "synthetic"
  int classes = 0;   ///< as --classes; 0: from the data
  std::string json;  ///< file for --json; empty: none
};
/// Lists every defect of a data set on stdout; exit 3 when it cannot be trained on. No other rank
/// needed.
ExitCode data_check_command(const DataRequest& request);
/// Prints figures about a data set. DataError when it has defects.
ExitCode data_stats_command(const DataRequest& request);

/// Prints the configuration, with the origin of each value.
ExitCode config_command(const Configuration& configuration, PrintStyle style);

}  // namespace ddp
