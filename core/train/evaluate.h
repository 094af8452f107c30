// Exact evaluation: every sample once, for any size and number of ranks. Counts are integers and
// the loss is summed on a fixed grid, so that the result is the same bytes however the samples are
// spread.
#pragma once

#include <vector>

#include "core/comm/world.h"
#include "core/data/loader.h"
#include "core/plan/executor.h"
#include "core/train/program.h"

namespace ddp {

struct Evaluation {
  std::int64_t samples = 0;
  double loss = 0;  ///< mean over samples; NaN when a sample's loss is not finite
  double top1 = 0, top5 = 0;
};

class Evaluator {
 public:
  struct Options {
    int loader_threads = 1;
    int prefetch = 4;
  };
  Evaluator(const Program& program, Backend& backend, const RunMemory& memory, World& world,
            const Dataset& dataset, const Options& options);

  /// Collective: every rank scores its share. Parameters are left as they are.
  Evaluation run();

 private:
  Backend& backend_;
  World& world_;
  const Dataset& dataset_;
  Options options_;
  std::int64_t batch_;
  Buffer state_;  ///< evaluation's own StepState: training's must not notice
  Executor executor_;
};

/// Copies a micro-batch to where `executor` reads it.
void upload(const MicroBatch& batch, Backend& backend, const Executor& executor);

}  // namespace ddp
