// metrics.jsonl, metrics.csv and the TensorBoard event file: one row or event per optimizer step in
// each, from one table of columns. Rank 0's training loop writes them; a disk that fills up costs
// rows, never the training.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/file.h"
#include "core/base/log.h"

namespace ddp {

namespace tensorboard {
class Event;
}

/// What is known of one optimizer step, summed or agreed over all ranks where that makes sense.
/// Times are milliseconds of the step on the writing rank.
struct StepMetrics {
  std::int64_t step = 0;  ///< from 1
  double epoch = 0;       ///< passes over the training samples after this step
  double loss = 0;        ///< mean over the global batch
  double lr = 0;
  double grad_norm = 0;  ///< global L2 norm before clipping
  double samples_per_s = 0;
  double data_ms = 0;          ///< waiting for samples
  double forward_ms = 0;       ///< over all micro-batches of the step
  double backward_ms = 0;      ///< without exposed communication
  double exposed_comm_ms = 0;  ///< waiting for all-reduces that backward did not hide
  double optimizer_ms = 0;
  std::optional<double> val_loss, val_top1,
      val_top5;          ///< of the evaluation that followed; fractions
  bool skipped = false;  ///< the update was not applied (--on-nan skip)
  std::optional<double> val_ema_loss, val_ema_top1,
      val_ema_top5;  ///< the same evaluation of the averaged weights
};

/// Figures of one evaluation; accuracies are fractions.
struct EvaluationMetrics {
  double loss = 0, top1 = 0, top5 = 0;
};

/// "step,epoch,loss,…" without newline: the order of columns in both files.
std::string metrics_csv_header();
/// Appends one line with its newline. NaN and infinity are null in JSON and nan, inf in CSV; what
/// is unknown is null in JSON and empty in CSV. Numbers are in shortest round-trip form.
void append_metrics_csv(std::string& out, const StepMetrics& metrics);
void append_metrics_json(std::string& out, const StepMetrics& metrics);
/// Makes `event` the scalars of all columns that are known: "train/loss", "time/data_ms",
/// "val/top1". Its wall time stays. Allocates nothing for an event that held as many before.
void set_metrics_event(tensorboard::Event& event, const StepMetrics& metrics);

struct MetricsFiles {
  std::filesystem::path jsonl, csv, events;
};

/// Holds the newest row back until the next one begins, so that an evaluation can still join it.
/// After its first rows it allocates nothing.
class MetricsWriter {
 public:
  /// Creates or empties the files. Throws StorageError when they cannot be created.
  MetricsWriter(const MetricsFiles& files, Logger logger);
  MetricsWriter(MetricsWriter&&) = delete;
  ~MetricsWriter();  ///< as finish()

  /// Writes the row held so far and holds this one.
  void step(const StepMetrics& metrics);
  /// Adds an evaluation to the row of the step it followed; one before the first step has no row
  /// and is dropped.
  void evaluation(const EvaluationMetrics& metrics);
  /// Adds the same evaluation of the averaged weights.
  void average_evaluation(const EvaluationMetrics& metrics);
  /// Writes the row held so far: call it when training ends, however it ends.
  void finish() noexcept;
  /// A row could not be written. It was said once through the logger; all files stop at their last
  /// whole row.
  bool failed() const { return failed_; }

 private:
  void append(AppendFile& file, std::string_view row) noexcept;

  AppendFile jsonl_, csv_, events_;
  Logger logger_;
  std::optional<StepMetrics> held_;
  std::unique_ptr<tensorboard::Event> event_;  ///< of the row held; reused for every one
  std::string row_;
  bool failed_ = false;
};

}  // namespace ddp
