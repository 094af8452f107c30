// How a run ended: the JSON object that is the last line on stdout of rank 0, and failure.json for
// a run that failed. Keys are stable: scripts read them; more may be added, none is renamed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/telemetry/confusion.h"

namespace ddp {

/// Everything optional is null in the object when it is unknown, and so is a number that is not
/// finite.
struct RunSummary {
  ExitCode exit = ExitCode::kFinished;  ///< decides the status: finished, stopped or failed
  std::optional<std::string> run_dir;
  std::int64_t steps = 0;  ///< optimizer steps done
  double epochs = 0;       ///< passes over the training samples done
  struct Final {
    std::optional<double> train_loss, val_loss, val_top1, val_top5;  ///< accuracies are fractions
    std::optional<double> val_ema_loss, val_ema_top1, val_ema_top5;  ///< of the averaged weights
  } final;
  struct Best {
    std::optional<std::string> metric;  ///< "val_top1"
    std::optional<double> value;
    std::optional<std::int64_t> step;
    std::optional<std::string> path;
  } best;
  std::optional<std::string> last_checkpoint;
  std::optional<double> samples_per_s;    ///< over all ranks
  std::optional<double> exposed_comm_ms;  ///< mean of a step
  struct PeakMemory {
    std::optional<std::uint64_t> allocated_bytes, reserved_bytes;
  } peak_memory;
  std::vector<ClassScore> per_class;     ///< of eval --per-class; the key is left out without it
  std::vector<std::string> class_names;  ///< of per_class; empty: unknown
  bool early_stopped = false;            ///< finished by --early-stop
  std::int64_t skipped_steps = 0;        ///< by --on-nan skip
};

/// "finished", "stopped" or "failed".
std::string_view status_of(ExitCode exit);

/// One line without newline.
std::string summary_json(const RunSummary& summary);

struct FailureReport {
  int rank = 0;
  std::string host;
  std::string device;
  std::optional<std::int64_t> step;  ///< null: before the first step
  std::string phase;                 ///< "start-up", "training", "evaluation", "saving"
  std::string cause;                 ///< the error's sentence
  std::string advice;                ///< what to do; empty: failure_advice(exit)
  ExitCode exit = ExitCode::kInternal;
};

/// What to do about a class of failure, for an error that does not say more.
std::string_view failure_advice(ExitCode exit);

std::string failure_json(const FailureReport& report);
/// Writes failure.json. Throws StorageError.
void write_failure_report(const std::filesystem::path& path, const FailureReport& report);

}  // namespace ddp
