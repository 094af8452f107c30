// Lines for people who watch a run: the progress line, the evaluation line and the start-up table.
// Pure formatting; rank 0's training loop logs them, one line each and never more often than asked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/telemetry/metrics.h"

namespace ddp {

struct Progress {
  StepMetrics
      metrics;  ///< of the newest step; rate and times averaged over the steps since the last line
  std::int64_t total_steps = 0;  ///< of the run
  int ranks = 1;
  double step_ms = 0;                 ///< whole step, averaged likewise
  std::uint64_t allocated_bytes = 0;  ///< in use on this rank
  std::uint64_t reserved_bytes = 0;   ///< taken from the system on this rank
  double eta_seconds = -1;            ///< to the end of the run; negative: unknown
};

/// "step  200/3744  epoch 0.43  loss 0.5312  lr 0.0534  grad norm 1.234  4512 samples/s (2256 per
/// rank)  step 28.4 ms: data 0.1, compute 26.0, exposed comm 1.2, optimizer 0.8  memory 34.2 MiB
/// of 40.0 MiB  ETA 1m41s" in one line. Compute is forward and backward; the step number is as wide
/// as the total, so that lines stand below each other.
std::string progress_line(const Progress& progress);

/// "loss 0.3512, top-1 87.53 %, top-5 99.61 %"
std::string evaluation_text(const EvaluationMetrics& metrics);
/// "evaluation after step 468: loss 0.3512, top-1 87.53 %, top-5 99.61 %"; of the averaged weights,
/// "averaged weights after step 468: …".
std::string evaluation_line(std::int64_t step, const EvaluationMetrics& metrics,
                            std::string_view what = "evaluation");

/// Names and values in two columns, indented, one pair a line: the start-up table.
std::string two_column_table(const std::vector<std::pair<std::string, std::string>>& rows);

}  // namespace ddp
