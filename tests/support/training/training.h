// A whole small training run inside a test: program, memory and trainer on ranks that are threads
// of this process. States the run in a few numbers, so that tests compare runs and nothing else.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/train/parameters.h"
#include "core/train/trainer.h"

namespace ddp::test {

struct TrainingRun {
  std::string model = "mlp";
  int ranks = 1;
  std::int64_t global_batch = 16, accum = 1, steps = 3;
  DType compute = DType::kF64;
  bool overlap = true;
  double dropout = 0.25;
  double clip_norm = 0;
  std::string optimizer = "sgd", on_nan = "stop";
  double learning_rate = 0.05;
  std::size_t bucket_bytes = 64 * 1024;
  std::int64_t train_samples = 70, validation_samples = 22;
  bool drop_last = true;
  std::uint64_t seed = 1;
  int threads = 1;             ///< of each rank
  Backend* backend = nullptr;  ///< null: the CPU; one rank only
  Shape image{12, 12, 1};
  bool recompute = false;
  double ema = 0;
  /// Changes the trainer of one rank before it is made.
  std::function<void(int rank, TrainerOptions&, TrainerHooks&)> adjust = {};
  /// Called before training on every rank, to disturb it.
  std::function<void(int rank, const Program&, const RunMemory&)> disturb = {};
};

struct TrainingOutcome {
  std::vector<StepReport> steps;            ///< of rank 0
  std::vector<NamedTensor> weights;         ///< of rank 0
  std::vector<NamedTensor> averages;        ///< of rank 0; none without ema
  std::vector<std::string> replica_hashes;  ///< of the weights and averages, by rank
  std::vector<TrainResult> results;         ///< by rank
  Evaluation evaluation;                    ///< the last one
};

/// Rethrows the first rank's exception.
TrainingOutcome train(const TrainingRun& run);

/// Program options of such a run for one of its ranks.
ProgramOptions program_options(const TrainingRun& run, const DatasetInfo& data);

/// Largest |a - b| over all weights, which must have the same names.
double largest_difference(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b);

}  // namespace ddp::test
