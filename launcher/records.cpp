#include "launcher/records.h"

#include <ctime>
#include <filesystem>

#include <mpi.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/plan/hash.h"
#include "launcher/setup.h"

namespace ddp {
namespace {

EvaluationMetrics metrics_of(const Evaluation& evaluation) {
  return {.loss = evaluation.loss, .top1 = evaluation.top1, .top5 = evaluation.top5};
}

StepMetrics metrics_of(const StepReport& report) {
  return {.step = report.step,
          .epoch = report.epoch,
          .loss = report.loss,
          .lr = report.learning_rate,
          .grad_norm = report.gradient_norm,
          .samples_per_s = report.samples / report.seconds,
          .data_ms = report.data_seconds * 1e3,
          .forward_ms = report.phases.forward * 1e3,
          .backward_ms = report.phases.backward * 1e3,
          .exposed_comm_ms = report.phases.exposed * 1e3,
          .optimizer_ms = report.phases.optimizer * 1e3,
          .skipped = report.skipped};
}

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  return text;  // some libraries count the terminating zero in the length
}

Environment environment_of(const Job& job, Backend& backend) {
  return {.command_line = job.command.command_line,
          .working_directory = std::filesystem::current_path().string(),
          .date = std::time(nullptr),
          .library_versions = {{"mpi", mpi_version()}, {"blas", backend.library_versions()}},
          .ranks = job.places,
          .variables = recorded_variables(environ)};
}

}  // namespace

Records::Records(Job& job, const RecordedRun& run) : job_(job), run_(run) {
  if (job.world->rank() != 0) return;
  const RunDirectory& directory = *job.directory;
  write_file_atomically(directory.config(),
                        print_config(run.resolved.configuration, PrintStyle::kFull));
  write_file_atomically(directory.environment(),
                        environment_json(environment_of(job, run.backend)));
  metrics_ = std::make_unique<MetricsWriter>(
      MetricsFiles{.jsonl = directory.metrics_jsonl(),
                   .csv = directory.metrics_csv(),
                   .events = directory.events(std::time(nullptr), job.world->host_name())},
      job.log);
}

void Records::on_step(const StepReport& report) {
  job_.summary.steps = report.step;
  job_.summary.epochs = report.epoch;
  job_.summary.skipped_steps += report.skipped ? 1 : 0;
  if (!metrics_) return;
  metrics_->step(metrics_of(report));
  if (report.skipped)
    job_.log->warn("step {}: the loss or the gradient is not finite; the update was skipped",
                   report.step);
  ++steps_since_line_;
  since_last_line_.seconds += report.seconds;
  since_last_line_.data_seconds += report.data_seconds;
  since_last_line_.samples += report.samples;
  since_last_line_.phases = since_last_line_.phases + report.phases;
  if (progress_due(report.step)) log_progress(report);
  loss_trend_.add(report.loss);
  loss_hint_given_ =
      loss_hint_given_ || give(loss_hint({.step = report.step,
                                          .warmup_steps = run_.resolved.warmup_steps,
                                          .total_steps = run_.resolved.total_steps,
                                          .lr = run_.resolved.configuration.values.lr(),
                                          .start = loss_trend_.start(),
                                          .recent = loss_trend_.recent(),
                                          .classes = run_.program.options().classes}));
}

bool Records::give(const std::optional<std::string>& hint) {
  if (hint) job_.log->info("hint: {}", *hint);
  return hint.has_value();
}

bool Records::progress_due(std::int64_t step) const {
  const Interval& every = run_.resolved.log_every;
  if (step == run_.resolved.total_steps) return !every.never();
  if (every.steps > 0) return step % every.steps == 0;
  return every.seconds > 0 && since_line_.seconds() >= every.seconds;
}

void Records::log_progress(const StepReport& report) {
  StepReport mean = report;
  const auto steps = static_cast<double>(steps_since_line_);
  mean.data_seconds = since_last_line_.data_seconds / steps;
  mean.phases = {.forward = since_last_line_.phases.forward / steps,
                 .backward = since_last_line_.phases.backward / steps,
                 .exposed = since_last_line_.phases.exposed / steps,
                 .optimizer = since_last_line_.phases.optimizer / steps};
  const double step_seconds = since_last_line_.seconds / steps;
  Progress progress{
      .metrics = metrics_of(mean),
      .total_steps = run_.resolved.total_steps,
      .ranks = job_.world->size(),
      .step_ms = step_seconds * 1e3,
      .allocated_bytes = run_.memory.allocated_bytes(),
      .reserved_bytes = reserved_bytes(run_.backend, run_.memory),
      .eta_seconds = step_seconds * static_cast<double>(run_.resolved.total_steps - report.step)};
  progress.metrics.samples_per_s = since_last_line_.samples / since_last_line_.seconds;
  job_.log->info("{}", progress_line(progress));
  since_last_line_ = {};
  steps_since_line_ = 0;
  since_line_.lap();
}

void Records::on_evaluation(const StepReport& report, const Evaluation& evaluation, bool best) {
  if (!metrics_) return;
  metrics_->evaluation(metrics_of(evaluation));
  job_.log->info("{}", evaluation_line(report.step, metrics_of(evaluation)));
  if (report.step > run_.resolved.warmup_steps)
    class_hint_given_ =
        class_hint_given_ || give(one_class_hint(evaluation.labels, evaluation.predictions));
  if (!best) return;
  const std::filesystem::path path = job_.directory->best_weights();
  try {
    save_weights(path, run_.weights, run_.program, run_.backend, run_.memory);
    job_.summary.best = {
        .metric = "val_top1", .value = evaluation.top1, .step = report.step, .path = path.string()};
  } catch (const StorageError& error) {
    job_.log->warn("the best weights so far could not be saved, training goes on: {}",
                   error.what());
  }
}

void Records::on_average_evaluation(const StepReport& report, const Evaluation& evaluation) {
  if (!metrics_) return;
  metrics_->average_evaluation(metrics_of(evaluation));
  job_.log->info("{}", evaluation_line(report.step, metrics_of(evaluation), "averaged weights"));
}

void Records::finish(const TrainResult& result) {
  RunSummary& summary = job_.summary;
  summary.final.train_loss = result.train_loss;
  if (result.last_evaluation) {
    summary.final.val_loss = result.last_evaluation->loss;
    summary.final.val_top1 = result.last_evaluation->top1;
    summary.final.val_top5 = result.last_evaluation->top5;
  }
  if (result.last_average_evaluation) {
    summary.final.val_ema_loss = result.last_average_evaluation->loss;
    summary.final.val_ema_top1 = result.last_average_evaluation->top1;
    summary.final.val_ema_top5 = result.last_average_evaluation->top5;
  }
  summary.early_stopped = result.early_stopped;
  summary.samples_per_s = result.samples_per_second;
  summary.exposed_comm_ms = result.exposed_ms;
  if (!metrics_) return;
  metrics_->finish();
  save_weights(job_.directory->final_weights(), run_.weights, run_.program, run_.backend,
               run_.memory);
  if (run_.program.options().optimizer.ema > 0)
    save_weights(job_.directory->average_weights(), run_.weights, run_.program, run_.backend,
                 averaged_weights(run_.program, run_.memory));
  if (metrics_->failed())
    throw StorageError(
        "{} could not be written to its end; the weights are whole. Free space on that disk",
        job_.directory->metrics_csv().string());
}

}  // namespace ddp
