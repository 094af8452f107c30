// What a configuration comes to in one job: batch sizes, number of steps, schedule, intervals.
// Pure: a function of the configuration, the number of ranks and the size of the data set, so that
// all ranks arrive at the same numbers. The launcher calls it once, after the data set is open.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config/batch.h"
#include "core/config/configuration.h"
#include "core/config/interval.h"

namespace ddp {

struct RunFacts {
  int ranks = 1;
  std::int64_t train_samples = 0;  ///< after --limit-train
};

struct ResolvedConfig {
  Configuration configuration;  ///< as asked, with what was left out filled in (kDerived)
  BatchSizes batch;
  std::int64_t steps_per_epoch = 0;
  std::int64_t total_steps = 0;   ///< optimizer steps of the whole run: the length of the schedule
  std::int64_t warmup_steps = 0;  ///< at most total_steps
  std::int64_t step_every = 1;    ///< of a step schedule
  std::vector<std::int64_t> milestones;  ///< of a multistep schedule: steps, not descending
  std::int64_t stop_at_step = 0;         ///< stop after this step as a signal would; 0: never
  double max_seconds = 0;                ///< stop after this time as a signal would; 0: never
  Interval eval_every;
  Interval log_every;
};

/// Fills in what depends on the optimizer and the schedule and is not set: learning rate, second
/// beta, warm-up.
Configuration with_optimizer_defaults(Configuration configuration);

/// Resolves a configuration whose values have been checked one by one. ConfigError, naming the
/// values and where they came from, if they do not fit together or the run has no step.
/// Idempotent: resolving the result's configuration gives the same.
ResolvedConfig resolve(const Configuration& asked, const RunFacts& facts);

}  // namespace ddp
