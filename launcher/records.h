// Records of a training run: rank 0's files, log lines and summary, fed by the trainer's hooks. On
// other ranks it does nothing.
#pragma once

#include <memory>

#include "core/base/stopwatch.h"
#include "core/telemetry/hints.h"
#include "core/telemetry/metrics.h"
#include "core/telemetry/progress.h"
#include "core/train/trainer.h"
#include "launcher/weights.h"

namespace ddp {

/// What records need to know of the run; all must outlive them.
struct RecordedRun {
  const ResolvedConfig& resolved;
  const Program& program;
  Backend& backend;
  const RunMemory& memory;
  WeightsInfo weights;
};

class Records {
 public:
  /// Rank 0 writes config.pbtxt and environment.json and opens the metrics files.
  Records(Job& job, const RecordedRun& run);

  void on_step(const StepReport& report);
  /// Writes weights/best.safetensors when `best`.
  void on_evaluation(const StepReport& report, const Evaluation& evaluation, bool best);
  /// The same evaluation of the averaged weights.
  void on_average_evaluation(const StepReport& report, const Evaluation& evaluation);
  /// Writes the last row, weights/final.safetensors and, with EMA, weights/ema.safetensors, and
  /// completes the summary. StorageError when final weights or metrics could not be written.
  void finish(const TrainResult& result);

 private:
  bool progress_due(std::int64_t step) const;
  void log_progress(const StepReport& report);
  /// Logs a hint; false when there is none.
  bool give(const std::optional<std::string>& hint);

  Job& job_;
  RecordedRun run_;
  std::unique_ptr<MetricsWriter> metrics_;  ///< null on other ranks
  Stopwatch since_line_;
  StepReport since_last_line_;  ///< sums of times and samples
  std::int64_t steps_since_line_ = 0;
  LossTrend loss_trend_;
  bool loss_hint_given_ = false, class_hint_given_ = false;
};

}  // namespace ddp
