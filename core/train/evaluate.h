// Exact evaluation: every sample once, for any size and number of ranks. Counts are integers and
// the loss is summed on a fixed grid, so that the result is the same bytes however the samples are
// spread.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/comm/world.h"
#include "core/plan/executor.h"
#include "core/train/input_queue.h"
#include "core/train/program.h"

namespace ddp {

struct Evaluation {
  std::int64_t samples = 0;
  double loss = 0;  ///< mean over samples; NaN when a sample's loss is not finite
  double top1 = 0, top5 = 0;
  std::vector<std::int64_t> labels, predictions;  ///< samples by class; without a prediction: none
};

/// One batch of this rank as the host sees it, valid during the call. Items of weight zero are
/// padding.
struct EvaluatedBatch {
  std::span<const std::int32_t> labels;
  std::span<const float> weights;
  std::span<const std::int64_t> sample_ids;
  std::span<const std::int32_t> predictions;  ///< see predict()
  std::span<const double> logits;             ///< [N, classes]
};
using BatchObserver = std::function<void(const EvaluatedBatch&)>;

class Evaluator {
 public:
  struct Options {
    int loader_threads = 1;
    int prefetch = 4;
  };
  /// Scores the weights that `memory` has at Region::kParameters and kBuffers.
  Evaluator(const Program& program, Backend& backend, const MemoryMap& memory, World& world,
            const Dataset& dataset, const Options& options);

  /// Collective: every rank scores its share, and shows each batch of it to `observer`, if there is
  /// one. Parameters are left as they are.
  Evaluation run(const BatchObserver& observer = {});

 private:
  void read_predictions();
  void read_logits();

  Backend& backend_;
  World& world_;
  const Dataset& dataset_;
  Options options_;
  std::int64_t batch_;
  int classes_;
  Buffer state_;  ///< evaluation's own StepState: training's must not notice
  Executor executor_;
  std::vector<std::int32_t> predictions_;  ///< of the newest batch
  std::vector<double> logits_;             ///< of the newest batch that was observed
};

}  // namespace ddp
