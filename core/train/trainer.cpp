#include "core/train/trainer.h"

#include <algorithm>
#include <cmath>

#include "core/telemetry/hints.h"
#include "core/train/parameters.h"

namespace ddp {
namespace {

/// Mean training loss over the most recent samples, and throughput without the first steps.
class RunningFigures {
 public:
  RunningFigures(std::int64_t window, std::int64_t steps)
      : window_(static_cast<std::size_t>(std::max<std::int64_t>(window, 1))),
        warm_up_(std::min<std::int64_t>(kWarmUpSteps, steps / 2)),
        recent_(window_) {}

  void add(const StepReport& report) {
    if (std::isfinite(report.loss))
      recent_[finite_++ % window_] = {report.loss * report.samples, report.samples};
    ++count_;
    exposed_ += report.phases.exposed;
    if (static_cast<std::int64_t>(count_) > warm_up_) {
      samples_ += report.samples;
      seconds_ += report.seconds;
    }
  }
  double mean_loss() const {
    double loss = 0, samples = 0;
    for (std::size_t i = 0; i < std::min(finite_, window_); ++i) {
      loss += recent_[i].loss_sum;
      samples += recent_[i].samples;
    }
    return loss / samples;  // NaN before the first step with a finite loss
  }
  double samples_per_second() const { return seconds_ > 0 ? samples_ / seconds_ : 0; }
  double exposed_ms() const {
    return count_ == 0 ? 0 : exposed_ * 1e3 / static_cast<double>(count_);
  }

 private:
  static constexpr std::int64_t kWarmUpSteps = 10;
  struct StepLoss {
    double loss_sum = 0, samples = 0;
  };
  std::size_t window_;
  std::int64_t warm_up_;
  std::vector<StepLoss> recent_;
  std::size_t count_ = 0, finite_ = 0;
  double exposed_ = 0, samples_ = 0, seconds_ = 0;
};

bool better(const Evaluation& a, const std::optional<Evaluation>& b) {
  return !std::isnan(a.top1) && !std::isnan(a.loss) && (!b || a.top1 > b->top1);
}

}  // namespace

Trainer::Trainer(const Program& program, Backend& backend, const RunMemory& memory, World& world,
                 Communicator* communicator, const Dataset& train, const Dataset* validation,
                 const TrainerOptions& options, TrainerHooks hooks)
    : program_(program),
      backend_(backend),
      memory_(memory),
      world_(world),
      communicator_(communicator),
      train_(train),
      options_(options),
      hooks_(std::move(hooks)),
      sampler_(train.info().size, options.global_batch, options.drop_last, options.seed),
      device_state_(reinterpret_cast<StepState*>(memory.base(Region::kState))),
      step_done_(backend.make_event()) {
  const std::int64_t accum = program.options().accum, micro_batch = program.options().micro_batch;
  // Micro-batch number step * accum + q of this rank is micro-batch rank * accum + q of that step's
  // global batch.
  index_ = [this, accum, micro_batch, rank = world.rank()](std::int64_t number, std::int64_t item) {
    const std::int64_t in_step = rank * accum + number % accum;
    return sampler_.sample(number / accum, in_step * micro_batch + item);
  };
  for (std::int64_t q = 0; q < std::min<std::int64_t>(accum, 3); ++q)
    executors_.push_back(std::make_unique<Executor>(program.micro_step(q == 2 ? accum - 1 : q),
                                                    backend, memory, communicator));
  if (validation == nullptr) return;
  const auto evaluator_of = [&](const MemoryMap& weights) {
    return std::make_unique<Evaluator>(
        program, backend, weights, world, *validation,
        Evaluator::Options{.loader_threads = options.loader_threads, .prefetch = options.prefetch});
  };
  evaluator_ = evaluator_of(memory);
  if (program.options().optimizer.ema > 0)
    average_evaluator_ = evaluator_of(averaged_weights(program, memory));
}

Executor& Trainer::executor(std::int64_t q) {
  const std::int64_t last = program_.options().accum - 1;
  return *(q == last ? executors_.back()
                     : executors_[static_cast<std::size_t>(std::min<std::int64_t>(q, 1))]);
}

TrainResult Trainer::run() {
  const std::int64_t accum = program_.options().accum;
  Loader loader(train_, index_,
                {.micro_batch = program_.options().micro_batch,
                 .first = 0,
                 .count = options_.steps * accum,
                 .threads = options_.loader_threads,
                 .depth = options_.prefetch});
  InputQueue input(backend_, loader, program_.micro_step(0));
  input.prefetch();
  RunningFigures figures(std::min(sampler_.steps_per_epoch(), options_.steps), options_.steps);
  TrainResult result;
  since_start_.lap();
  since_evaluation_.lap();
  while (result.steps < options_.steps && !result.stopped && !result.early_stopped) {
    hooks_.on_step_begin(result.steps + 1);
    const StepReport report = train_step(loader, input, result.steps + 1);
    if (state_.diverged != 0) name_culprit(report.step);
    result.steps = report.step;
    result.epochs = report.epoch;
    figures.add(report);
    hooks_.on_step(report);
    count_skips(report);

    const bool last = report.step == options_.steps;
    result.stopped = !last && state_.stop_votes > 0;
    const bool due =
        options_.evaluate_every.steps > 0 && report.step % options_.evaluate_every.steps == 0;
    if (evaluator_ && (due || last || result.stopped || state_.evaluate_votes > 0)) {
      evaluate(report, result);
      result.early_stopped = !last && !result.stopped && options_.early_stop > 0 &&
                             evaluations_since_best_ >= options_.early_stop;
    }
    if (options_.check_replicas_every > 0 && report.step % options_.check_replicas_every == 0)
      check_replicas(program_, backend_, memory_, world_);
  }
  check_outcome(result);
  result.train_loss = figures.mean_loss();
  result.samples_per_second = figures.samples_per_second();
  result.exposed_ms = figures.exposed_ms();
  return result;
}

StepReport Trainer::train_step(Loader& loader, InputQueue& input, std::int64_t step) {
  Stopwatch whole;
  const double waited_before = loader.waited_seconds();
  const PhaseTimes phases_before = backend_.phase_times();
  StepReport report{.step = step};
  const bool evaluation_due = options_.evaluate_every.seconds > 0 && world_.rank() == 0 &&
                              since_evaluation_.seconds() >= options_.evaluate_every.seconds;
  write_votes(wants_stop(step) ? 1 : 0, evaluation_due ? 1 : 0);
  for (std::int64_t q = 0; q < program_.options().accum; ++q) {
    Executor& micro_step = executor(q);
    input.feed(micro_step);
    micro_step.run();
    // While this one is computed, the next one is copied.
    if (step < options_.steps || q + 1 < program_.options().accum) input.prefetch();
  }
  backend_.compute().record(*step_done_);
  wait_for(*step_done_, communicator_);
  backend_.download(&state_, device_state_, sizeof(state_));
  report.phases = backend_.phase_times() - phases_before;
  report.epoch = static_cast<double>(report.step) / static_cast<double>(sampler_.steps_per_epoch());
  report.loss = state_.loss_sum / state_.weight_sum;
  report.learning_rate = state_.learning_rate;
  report.gradient_norm = state_.gradient_norm;
  report.samples = state_.weight_sum;
  report.skipped = state_.skip != 0;
  report.data_seconds = loader.waited_seconds() - waited_before;
  report.seconds = whole.seconds();
  return report;
}

bool Trainer::wants_stop(std::int64_t step) const {
  return step == options_.stop_at_step ||
         (hooks_.stop_requested != nullptr && hooks_.stop_requested->load()) ||
         (options_.max_seconds > 0 && since_start_.seconds() >= options_.max_seconds);
}

void Trainer::write_votes(double stop, double evaluate) {
  backend_.upload(&device_state_->stop_votes, &stop, sizeof(stop));
  backend_.upload(&device_state_->evaluate_votes, &evaluate, sizeof(evaluate));
}

void Trainer::evaluate(const StepReport& report, TrainResult& result) {
  hooks_.on_evaluation_begin();
  const Evaluation evaluation = evaluator_->run();
  const bool best = better(evaluation, result.best_evaluation);
  result.last_evaluation = evaluation;
  evaluations_since_best_ = best ? 0 : evaluations_since_best_ + 1;
  if (best) {
    result.best_evaluation = evaluation;
    result.best_step = report.step;
  }
  hooks_.on_evaluation(report, evaluation, best);
  if (average_evaluator_) {
    result.last_average_evaluation = average_evaluator_->run();
    hooks_.on_average_evaluation(report, *result.last_average_evaluation);
  }
  since_evaluation_.lap();
}

void Trainer::count_skips(const StepReport& report) {
  skips_in_a_row_ = report.skipped ? skips_in_a_row_ + 1 : 0;
  if (skips_in_a_row_ == kMostSkipsInARow)
    throw AgreedFailure(
        {.rank = kAllRanks,
         .code = ExitCode::kDiverged,
         .sentence = fmt::format("step {}: the last {} steps had a loss or a gradient that is not "
                                 "finite and were skipped: nothing is learnt any more. {}",
                                 report.step, kMostSkipsInARow, kStabilityAdvice)});
}

void Trainer::check_outcome(const TrainResult& result) {
  if (!result.last_evaluation || std::isfinite(result.last_evaluation->loss)) return;
  const std::vector<std::string> bad =
      world_.gather(first_nonfinite_parameter(program_, backend_, memory_).value_or(""));
  const auto name = std::ranges::find_if(bad, [](const std::string& n) { return !n.empty(); });
  if (name == bad.end() && !program_.options().optimizer.finish.stop_on_nan) return;
  const std::string why =
      name == bad.end() ? "the weights are finite, but so large that what is computed overflows"
                        : fmt::format("'{}' is not finite any more", *name);
  throw AgreedFailure(
      {.rank = kAllRanks,
       .code = ExitCode::kDiverged,
       .sentence = fmt::format("the loss of the evaluation after step {} is not finite: {}. {}",
                               result.steps, why, kStabilityAdvice)});
}

void Trainer::name_culprit(std::int64_t step) {
  // The update was not applied, so the step can be computed again, op by op, with the same numbers.
  StepState again;
  again.step = static_cast<std::uint64_t>(step - 1);
  again.update = state_.update;
  backend_.upload(device_state_, &again, sizeof(again));
  const std::int64_t accum = program_.options().accum;
  MicroBatch batch = make_micro_batch(program_.options().micro_batch, train_.info().image);
  std::optional<std::string> culprit;
  for (std::int64_t q = 0; q < accum && !culprit; ++q) {
    read_micro_batch(train_, index_, (step - 1) * accum + q, batch);
    upload(batch, backend_, executor(q));
    culprit = executor(q).first_nonfinite();
  }
  const std::vector<std::string> all = world_.gather(culprit.value_or(""));
  for (int rank = 0; rank < world_.size(); ++rank)
    if (const std::string& name = all[static_cast<std::size_t>(rank)]; !name.empty())
      throw AgreedFailure(
          {.rank = rank,
           .code = ExitCode::kDiverged,
           .sentence = fmt::format("step {}: the loss or the gradient is not finite; the first bad "
                                   "tensor is {} on rank {}. The weights are "
                                   "those of step {}. {}",
                                   step, name, rank, step - 1, divergence_advice(step))});
  throw AgreedFailure(
      {.rank = kAllRanks,
       .code = ExitCode::kDiverged,
       .sentence = fmt::format(
           "step {}: every tensor is finite, but the sum of the gradients over micro-batches and "
           "ranks is not: it overflows. Try a lower --lr",
           step)});
}

}  // namespace ddp
