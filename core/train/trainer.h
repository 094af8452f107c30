// Trainer: the loop over optimizer steps of one rank. It reads samples ahead, runs the plans,
// evaluates when due, and stops when all ranks have agreed to. What happens to the figures (files,
// log lines) is the business of its hooks.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "core/base/stopwatch.h"
#include "core/config/resolve.h"
#include "core/data/sampler.h"
#include "core/train/evaluate.h"

namespace ddp {

/// Steps in a row that --on-nan skip leaves out at most. One bad sample spoils one step; when all
/// of this many are bad, the weights themselves are, and nothing is learnt any more.
inline constexpr std::int64_t kMostSkipsInARow = 100;

struct TrainerOptions {
  std::int64_t steps = 0;  ///< of the whole run
  std::int64_t global_batch = 0;
  bool drop_last = true;
  std::uint64_t seed = 1;
  Interval evaluate_every;                ///< and after the last step
  std::int64_t stop_at_step = 0;          ///< 0: never
  double max_seconds = 0;                 ///< 0: no limit
  std::int64_t check_replicas_every = 0;  ///< steps; 0: never
  std::int64_t early_stop = 0;  ///< finish after so many evaluations without a best; 0: never
  int loader_threads = 1, prefetch = 4;
};

/// Figures of one optimizer step, equal on all ranks except the times, which are this rank's.
struct StepReport {
  std::int64_t step = 0;  ///< from 1
  double epoch = 0;       ///< passes over the training samples, after this step
  double loss = 0;        ///< mean over the samples of the global batch
  double learning_rate = 0;
  double gradient_norm = 0;  ///< before clipping
  double samples = 0;        ///< that counted: padding has weight zero
  bool skipped = false;      ///< the update was not applied
  double seconds = 0;        ///< whole step
  double data_seconds = 0;   ///< waiting for input
  PhaseTimes phases;
};

struct TrainerHooks {
  /// Before step `step`, counted from 1, is computed.
  std::function<void(std::int64_t step)> on_step_begin = [](std::int64_t) {};
  std::function<void(const StepReport&)> on_step = [](const StepReport&) {};
  /// Before the evaluations after a step.
  std::function<void()> on_evaluation_begin = [] {};
  /// After an evaluation; `best` when its top-1 is the highest so far (NaN never is).
  std::function<void(const StepReport&, const Evaluation&, bool best)> on_evaluation =
      [](const StepReport&, const Evaluation&, bool) {};
  /// After on_evaluation, of a program with EMA: the figures of the averaged weights.
  std::function<void(const StepReport&, const Evaluation&)> on_average_evaluation =
      [](const StepReport&, const Evaluation&) {};
  /// This rank wants to stop: set by a signal.
  const std::atomic<bool>* stop_requested = nullptr;
};

struct TrainResult {
  std::int64_t steps = 0;
  double epochs = 0;
  bool stopped = false;        ///< before the last step, by signal, --stop-at-step or --max-time
  bool early_stopped = false;  ///< before the last step, by --early-stop
  /// Mean over the samples of the last epoch's worth of steps (fewer if fewer were run), without
  /// steps whose loss is not finite; NaN when there is no other.
  double train_loss = 0;
  std::optional<Evaluation> last_evaluation, best_evaluation;
  std::optional<Evaluation> last_average_evaluation;  ///< of a program with EMA
  std::int64_t best_step = 0;
  double samples_per_second =
      0;                  ///< training only, first steps left out as warm-up where there are enough
  double exposed_ms = 0;  ///< mean per step, this rank
};

class Trainer {
 public:
  /// `communicator` is null at world size 1. `validation` may be null: no evaluation.
  Trainer(const Program& program, Backend& backend, const RunMemory& memory, World& world,
          Communicator* communicator, const Dataset& train, const Dataset* validation,
          const TrainerOptions& options, TrainerHooks hooks);

  /// Collective. Throws AgreedFailure (exit 8) when a step is not finite under --on-nan stop, after
  /// kMostSkipsInARow such steps under --on-nan skip, and when the run ends with an evaluation that
  /// is not finite (under skip only if a weight is not finite).
  TrainResult run();

 private:
  StepReport train_step(Loader& loader, InputQueue& input, std::int64_t step);
  void write_votes(double stop, double evaluate);
  [[noreturn]] void name_culprit(std::int64_t step);
  void count_skips(const StepReport& report);
  void check_outcome(const TrainResult& result);
  void evaluate(const StepReport& report, TrainResult& result);
  Executor& executor(std::int64_t q);
  bool wants_stop(std::int64_t step) const;

  const Program& program_;
  Backend& backend_;
  const RunMemory& memory_;
  World& world_;
  Communicator* communicator_;
  const Dataset& train_;
  TrainerOptions options_;
  TrainerHooks hooks_;
  Sampler sampler_;
  SampleIndex index_;
  std::vector<std::unique_ptr<Executor>> executors_;  ///< first, inner, last; or the only one
  std::unique_ptr<Evaluator> evaluator_, average_evaluator_;  ///< the latter with EMA only
  std::int64_t evaluations_since_best_ = 0, skips_in_a_row_ = 0;
  StepState* device_state_;
  std::unique_ptr<Event> step_done_;
  StepState state_;  ///< host copy of the last step
  Stopwatch since_start_, since_evaluation_;
};

}  // namespace ddp
