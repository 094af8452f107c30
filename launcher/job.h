// Job: what every rank of a command that trains or evaluates stands on: the MPI session, the
// agreement of ranks, the logger, and what is known so far of how it goes. run_job makes it and
// brings it to an end that all ranks share.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/mpi/session.h"
#include "core/base/log.h"
#include "core/comm/world.h"
#include "core/config/configuration.h"
#include "core/data/dataset.h"
#include "core/telemetry/environment.h"
#include "core/telemetry/run_directory.h"
#include "core/telemetry/summary.h"
#include "launcher/signals.h"

namespace ddp {

/// What eval and predict are asked for beside the configuration.
struct ScoringRequest {
  std::string weights;               ///< --weights
  bool per_class = false;            ///< eval --per-class
  std::string confusion;             ///< eval --confusion: a file; empty: none
  Split split = Split::kValidation;  ///< predict --split
  std::string output;                ///< predict --output: a file; empty: stdout
  int top = 1;                       ///< predict --top
};

/// The command line of one rank. A bad one keeps its error until all ranks can hear of it.
struct ParsedCommand {
  std::vector<std::string> command_line;
  Configuration configuration;
  ScoringRequest scoring;
  std::string task = "train";  ///< what ranks must do alike beside the configuration, as typed
  bool dry_run = false;
  std::string error;  ///< a ConfigError's sentence; empty: parsed
};

struct Job {
  explicit Job(const ParsedCommand& parsed);

  const ParsedCommand& command;
  StopSignal stop;  ///< blocks signals before MPI starts threads
  comm::MpiSession session;
  std::unique_ptr<World> world;
  Logger log;

  std::vector<RankPlace> places;            ///< by rank; empty until devices are chosen
  std::unique_ptr<RunDirectory> directory;  ///< null until it exists
  std::string phase = "start-up";           ///< "training", "evaluation", "saving"
  std::optional<std::int64_t> step;         ///< being computed; nothing before training
  RunSummary summary;                       ///< printed by rank 0 at the end, however it ends
  bool stdout_is_taken = false;             ///< by a result that ends without a summary
};

/// Runs `body` on this rank and returns the process's exit code. Whatever `body` throws becomes the
/// end of the whole job: rank 0 says which rank failed where and why, writes failure.json and
/// prints the summary as the last line on stdout; every rank logs it and leaves with the same code.
/// A stdout that does not take its last line is a failure too (exit 7).
int run_job(const ParsedCommand& command, const std::function<ExitCode(Job&)>& body);

/// Collective. AgreedFailure (exit 2) if a rank could not parse its command line, or the commands
/// or configurations differ: with both sides and the ranks.
void agree_on_command(Job& job);

}  // namespace ddp
