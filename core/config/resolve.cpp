#include "core/config/resolve.h"

#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/ops/optimizer/lr_schedule.h"

namespace ddp {
namespace {

constexpr double kDefaultEpochs = 8;

double default_learning_rate(const std::string& optimizer) {
  if (optimizer == "adamw") return 0.001;
  if (optimizer == "lion") return 0.0003;  // its authors: three to ten times below adamw's
  return optimizer == "lars" ? 3 : 0.1;
}

std::int64_t count_steps_per_epoch(const Configuration& configuration, std::int64_t samples) {
  if (samples <= 0)
    throw ConfigError("there is nothing to train on: the data set has no training samples");
  const std::int64_t global = configuration.values.global_batch();
  if (configuration.values.last_batch() == "partial") return (samples + global - 1) / global;
  if (samples < global)
    throw ConfigError(
        "an epoch has no step: {} is larger than the {} training samples, and --last-batch drop "
        "leaves an incomplete batch out; give --last-batch partial, or a global batch of at most "
        "{}",
        describe_value(configuration, TrainConfig::kGlobalBatchFieldNumber), samples, samples);
  return samples / global;
}

std::int64_t count_steps(const Configuration& configuration, std::int64_t steps_per_epoch) {
  const TrainConfig& values = configuration.values;
  if (values.has_steps()) return values.steps();
  const std::int64_t steps = std::llround(values.epochs() * static_cast<double>(steps_per_epoch));
  if (steps == 0)
    throw ConfigError(
        "the run has no step: {} of {} steps is less than half a step; give more epochs, or "
        "--steps",
        describe_value(configuration, TrainConfig::kEpochsFieldNumber), steps_per_epoch);
  return steps;
}

/// How errors name a field: its flag, or its name and where it was set.
std::string where_set(const Configuration& configuration, int field_number) {
  const ConfigField& field = config_field(field_number);
  const std::string origin = origin_of(configuration, field);
  return origin == kFromFlag || origin == kFromDefault ? flag_name(field)
                                                       : origin + ": " + field.name();
}

Interval resolve_interval(const Configuration& configuration, int field_number,
                          const std::string& text, const ResolvedConfig& run) {
  return over_run(parse_interval(text, where_set(configuration, field_number)), run.steps_per_epoch,
                  run.total_steps);
}

/// Steps until the learning rate drops, which must be within the run.
std::int64_t count_steps_to_drop(const std::string& text, const std::string& where,
                                 const ResolvedConfig& run) {
  const Interval drop =
      over_run(parse_interval(text, where), run.steps_per_epoch, run.total_steps);
  if (drop.steps > run.total_steps)
    throw ConfigError(
        "{}: {} never lowers the learning rate in a run of {} steps; give 1 to {} steps, or a "
        "fraction of the run (0.5)",
        where, text, run.total_steps, run.total_steps);
  return drop.steps;
}

std::int64_t count_step_every(const Configuration& configuration, const ResolvedConfig& run) {
  return count_steps_to_drop(configuration.values.step_every(),
                             where_set(configuration, TrainConfig::kStepEveryFieldNumber), run);
}

std::vector<std::int64_t> count_milestones(const Configuration& configuration,
                                           const ResolvedConfig& run) {
  const std::string where = where_set(configuration, TrainConfig::kMilestonesFieldNumber);
  const std::string& text = configuration.values.milestones();
  std::vector<std::int64_t> milestones;
  for (const std::string& part : split(text, ',')) {
    const std::int64_t steps = count_steps_to_drop(part, where, run);
    if (!milestones.empty() && steps < milestones.back())
      throw ConfigError("{}: \"{}\" does not ascend: {} is before the milestone it follows", where,
                        text, part);
    milestones.push_back(steps);
  }
  if (milestones.size() > kMaxMilestones)
    throw ConfigError("{}: {} milestones; at most {} are possible", where, milestones.size(),
                      kMaxMilestones);
  return milestones;
}

std::int64_t count_warmup_steps(const Configuration& configuration, const ResolvedConfig& run) {
  constexpr int kField = TrainConfig::kWarmupFieldNumber;
  const std::string where = where_set(configuration, kField);
  const IntervalText warmup = parse_interval(configuration.values.warmup(), where);
  // Unlike an evaluation, a short run may round its warm-up to nothing.
  if (warmup.unit == IntervalUnit::kRuns)
    return std::llround(warmup.amount * static_cast<double>(run.total_steps));
  const std::int64_t steps = over_run(warmup, run.steps_per_epoch, run.total_steps).steps;
  if (steps > run.total_steps)
    throw ConfigError(
        "{}: a warm-up of {} steps is longer than the run of {} steps, which would never reach its "
        "learning rate; give a shorter one, or a fraction of the run (0.05)",
        where, steps, run.total_steps);
  return steps;
}

void check_together(const Configuration& configuration) {
  const TrainConfig& values = configuration.values;
  const auto describe = [&](int field) { return describe_value(configuration, field); };
  if (values.has_epochs() && values.has_steps())
    throw ConfigError("{} and {} both set the length of the run; give one of them",
                      describe(TrainConfig::kEpochsFieldNumber),
                      describe(TrainConfig::kStepsFieldNumber));
}

}  // namespace

Configuration with_optimizer_defaults(Configuration configuration) {
  const TrainConfig& values = configuration.values;
  derive(configuration, TrainConfig::kLrFieldNumber, &TrainConfig::set_lr,
         default_learning_rate(values.optimizer()));
  derive(configuration, TrainConfig::kBeta2FieldNumber, &TrainConfig::set_beta2,
         values.optimizer() == "lion" ? 0.99 : 0.999);
  if (!values.has_warmup()) {
    configuration.values.set_warmup(values.schedule() == "one-cycle" ? "0.3" : "0.05");
    configuration.origins[TrainConfig::kWarmupFieldNumber] = kDerived;
  }
  return configuration;
}

ResolvedConfig resolve(const Configuration& asked, const RunFacts& facts) {
  check_together(asked);
  ResolvedConfig run;
  run.configuration = with_optimizer_defaults(asked);
  run.batch = resolve_batch(asked, facts.ranks);
  Configuration& configuration = run.configuration;
  const TrainConfig& values = configuration.values;
  derive(configuration, TrainConfig::kGlobalBatchFieldNumber, &TrainConfig::set_global_batch,
         static_cast<std::int32_t>(run.batch.global));
  derive(configuration, TrainConfig::kMicroBatchFieldNumber, &TrainConfig::set_micro_batch,
         static_cast<std::int32_t>(run.batch.micro));
  derive(configuration, TrainConfig::kAccumFieldNumber, &TrainConfig::set_accum,
         static_cast<std::int32_t>(run.batch.accum));
  if (!values.has_steps())
    derive(configuration, TrainConfig::kEpochsFieldNumber, &TrainConfig::set_epochs,
           kDefaultEpochs);
  if (values.min_lr() > values.lr())
    throw ConfigError("{} is above the peak, {}; lower it",
                      describe_value(configuration, TrainConfig::kMinLrFieldNumber),
                      describe_value(configuration, TrainConfig::kLrFieldNumber));

  run.steps_per_epoch = count_steps_per_epoch(configuration, facts.train_samples);
  run.total_steps = count_steps(configuration, run.steps_per_epoch);
  run.warmup_steps = count_warmup_steps(configuration, run);
  if (values.schedule() == "step") run.step_every = count_step_every(configuration, run);
  if (values.schedule() == "multistep") run.milestones = count_milestones(configuration, run);
  run.stop_at_step = values.stop_at_step();
  if (values.has_max_time())
    run.max_seconds = parse_duration(values.max_time(),
                                     where_set(configuration, TrainConfig::kMaxTimeFieldNumber));
  run.eval_every =
      resolve_interval(configuration, TrainConfig::kEvalEveryFieldNumber, values.eval_every(), run);
  run.log_every =
      resolve_interval(configuration, TrainConfig::kLogEveryFieldNumber, values.log_every(), run);
  if (values.has_early_stop() && run.eval_every.never())
    throw ConfigError("{} needs evaluations, and {} has none before the end",
                      describe_value(configuration, TrainConfig::kEarlyStopFieldNumber),
                      describe_value(configuration, TrainConfig::kEvalEveryFieldNumber));
  return run;
}

}  // namespace ddp
