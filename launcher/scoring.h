// Scoring: a weight file and a data set set up to be run through each other, with memory for nothing
// but the evaluation plan. Shared by eval and predict.
#pragma once

#include <memory>

#include "core/train/evaluate.h"
#include "launcher/weights.h"

namespace ddp {

struct Scoring {
  WeightsInfo weights;
  Configuration configuration;  ///< model, classes and precision are the weight file's
  Device device;
  std::unique_ptr<Dataset> data;
  std::unique_ptr<Program> program;
  std::unique_ptr<RunMemory> memory;
};

/// Collective. Reads job.command.scoring.weights and opens the data. AgreedFailure when they do not
/// fit together.
Scoring prepare_scoring(Job& job, Split split);

/// Collective. Scores all samples, shows each rank its batches and logs the figures.
Evaluation score(Job& job, const Scoring& scoring, const BatchObserver& observer);

/// AgreedFailure (exit 8) when the loss is not finite; for after the results are written.
void check_loss_is_finite(const Job& job, const Evaluation& evaluation);

}  // namespace ddp
