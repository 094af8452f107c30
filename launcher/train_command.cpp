#include <algorithm>
#include <ctime>

#include <fmt/ranges.h>

#include "comm/nccl_communicator.h"
#include "core/base/text.h"
#include "core/base/version.h"
#include "core/plan/hash.h"
#include "launcher/commands.h"
#include "launcher/records.h"

namespace ddp {
namespace {

/// Collective. Rank 0 makes the run directory; all ranks log into it.
void make_run_directory(Job& job, const TrainConfig& config) {
  agree(*job.world, [&] {
    if (job.world->rank() == 0)
      job.directory =
          std::make_unique<RunDirectory>(create_run_directory({.out = config.out(),
                                                               .model = config.model(),
                                                               .overwrite = config.overwrite(),
                                                               .now = std::time(nullptr)}));
  });
  const std::string root =
      job.world->broadcast(job.directory ? job.directory->root.string() : "", 0);
  agree(*job.world, [&] {
    if (!job.directory) job.directory = std::make_unique<RunDirectory>(RunDirectory{.root = root});
    add_log_file(*job.log, job.directory->log(job.world->rank()));
  });
}

/// Collective. All ranks start from rank 0's parameters, and it is checked that they did.
void share_parameters(Job& job, const Program& program, Backend& backend, const RunMemory& memory,
                      Communicator& communicator) {
  initialize_parameters(program, backend, memory);
  if (job.world->size() == 1) return;
  const std::unique_ptr<Event> ready = backend.make_event(), done = backend.make_event();
  const Collective collective{
      .kind = CollectiveKind::kBroadcast, .root = 0, .sequence = -1, .label = "parameters"};
  const Placement slab{.region = Region::kParameters,
                       .offset = 0,
                       .type = {Shape{static_cast<std::int64_t>(program.layout().elements)},
                                program.layout().dtype}};
  backend.compute().record(*ready);
  communicator.post(collective, memory.view(slab), *ready, *done);
  wait_for(*done, &communicator);
  communicator.check();
  check_replicas(program, backend, memory, *job.world);
}

/// What `run` returns. A rank that fails alone tells the others before it lets go of the
/// collectives that they are in.
TrainResult leave_together(Job& job, Communicator& communicator,
                           const std::function<TrainResult()>& run) {
  try {
    return run();
  } catch (const AgreedFailure&) {
    throw;
  } catch (const PeerFailed&) {
    comm::abandon(communicator);
    throw;
  } catch (const Error& error) {
    job.world->announce(
        {.rank = job.world->rank(), .code = error.code(), .sentence = error.what()});
    comm::abandon(communicator);
    throw;
  }
}

void log_start(Job& job, const ResolvedConfig& resolved, const Program& program,
               const Device& device, const DatasetInfo& train, const DatasetInfo& validation,
               const RunMemory& memory) {
  const TrainConfig& config = resolved.configuration.values;
  const int ranks = job.world->size();
  const PlanMemory& plan = program.micro_step(0).memory;
  std::string recomputation = program.options().recompute ? "block" : "none";
  if (program.options().recompute && job.world->rank() == 0)
    recomputation = describe_recomputation(program);
  job.log->info("ddptrain {} trains {} on {}", version(), config.model(),
                count_text(ranks, "rank"));
  job.log->info(
      "{}",
      two_column_table({
          {"device",
           fmt::format("{}: {}{}", device.backend->kind() == BackendKind::kCpu ? "CPU" : "GPU",
                       job.places[0].device,
                       device.note.empty() ? "" : fmt::format(" ({})", device.note))},
          {"threads",
           fmt::format("{} per rank; {} cores shared by {} of this host", device.placement.threads,
                       device.placement.cores, count_text(device.placement.sharing, "rank"))},
          {"data", fmt::format("{}: {} training, {} validation samples, {} classes, images {}",
                               train.source, train.size, validation.size, program.options().classes,
                               train.image.to_string())},
          {"normalisation",
           fmt::format("mean {:.4f}, standard deviation {:.4f} ({})", fmt::join(train.mean, " "),
                       fmt::join(train.stddev, " "), train.normalisation_source)},
          {"batch",
           fmt::format("global {} = {} x micro-batch {} x accumulation {}", resolved.batch.global,
                       count_text(ranks, "rank"), resolved.batch.micro, resolved.batch.accum)},
          {"length",
           fmt::format("{} steps, {} per epoch", resolved.total_steps, resolved.steps_per_epoch)},
          {"optimizer", fmt::format("{}, lr {} ({}, {} warm-up steps), weight decay {}",
                                    config.optimizer(), config.lr(), config.schedule(),
                                    resolved.warmup_steps, config.weight_decay())},
          {"averaged weights",
           config.has_ema() ? fmt::format("decay {}", config.ema()) : std::string("none")},
          {"precision", config.precision()},
          {"parameters", fmt::format("{} in {} tensors", program.graph().parameter_elements(),
                                     program.graph().parameters().size())},
          {"buckets", ranks == 1 ? "none: nothing to communicate"
                                 : fmt::format("{}, overlap {}", program.layout().buckets.size(),
                                               config.overlap())},
          {"memory",
           fmt::format("{} per rank: parameters {}, gradients {}, optimizer {}, activations {}; "
                       "reserved {}",
                       human_bytes(memory.allocated_bytes()), human_bytes(plan.parameters),
                       human_bytes(plan.gradients), human_bytes(plan.optimizer),
                       human_bytes(plan.arena),
                       human_bytes(reserved_bytes(*device.backend, memory)))},
          {"input",
           device.backend->is_asynchronous()
               ? fmt::format("bytes read by {} threads into pinned memory, copied ahead to the "
                             "GPU, normalised and augmented there",
                             config.loader_threads())
               : fmt::format("read by {}", count_text(config.loader_threads(), "thread"))},
          {"recomputation", recomputation},
          {"schedule_hash", schedule_hash(program.schedule_text())},
          {"kernel_hash", kernel_hash(program.plans(), device.backend->library_versions())},
      }));
}

TrainerOptions trainer_options(const ResolvedConfig& resolved) {
  const TrainConfig& config = resolved.configuration.values;
  return {.steps = resolved.total_steps,
          .global_batch = resolved.batch.global,
          .drop_last = config.last_batch() == "drop",
          .seed = static_cast<std::uint64_t>(config.seed()),
          .evaluate_every = resolved.eval_every,
          .stop_at_step = resolved.stop_at_step,
          .max_seconds = resolved.max_seconds,
          .check_replicas_every = config.check_replicas(),
          .early_stop = config.early_stop(),
          .loader_threads = config.loader_threads(),
          .prefetch = config.prefetch()};
}

}  // namespace

ExitCode train_command(Job& job) {
  agree_on_command(job);
  Configuration configuration;
  models::ChosenModel model;
  agree(*job.world, [&] {
    model = models::choose_model(job.command.configuration.values.model());
    configuration = with_input(job.command.configuration, model.input);
  });
  for (const std::string& note : job.command.configuration.notes) job.log->info("note: {}", note);
  if (configuration.values.recompute() == "block")
    for (const std::string& note : model.block_notes) job.log->info("note: {}", note);
  const Device device = choose_device(job, configuration);
  const TrainConfig& asked = configuration.values;
  Backend& backend = *device.backend;
  const std::unique_ptr<Dataset> train = open_data(job, configuration, Split::kTrain);
  const std::unique_ptr<Dataset> validation = open_data(job, configuration, Split::kValidation);
  ResolvedConfig resolved;
  DataFacts facts;
  agree(*job.world, [&] {
    resolved =
        resolve(configuration, {.ranks = job.world->size(), .train_samples = train->info().size});
    facts = data_facts(asked, train->info());
  });
  const TrainConfig& config = resolved.configuration.values;
  const std::unique_ptr<Program> program =
      build_program(job, program_options(resolved, model, facts, job.world->size(),
                                         {backend.kind(), backend.kernel_context()}));
  const std::unique_ptr<Communicator> communicator =
      make_communicator(job, backend, config.deterministic());
  const std::unique_ptr<RunMemory> memory = allocate_memory(
      job, backend, program->plans(),
      comm::allocate_symmetric(
          *communicator, backend,
          region_bytes(program->plans())[static_cast<std::size_t>(Region::kGradients)]));
  job.summary.peak_memory = {.allocated_bytes = memory->allocated_bytes(),
                             .reserved_bytes = reserved_bytes(backend, *memory)};
  if (!job.command.dry_run) make_run_directory(job, config);
  log_start(job, resolved, *program, device, train->info(), validation->info(), *memory);
  if (job.command.dry_run) {
    job.log->info("dry run: everything fits together; no step was done and nothing was written");
    return ExitCode::kFinished;
  }

  share_parameters(job, *program, backend, *memory, *communicator);
  start_averages(*program, backend, *memory);
  std::unique_ptr<Records> records;
  agree(*job.world, [&] {
    records = std::make_unique<Records>(job, RecordedRun{.resolved = resolved,
                                                         .program = *program,
                                                         .backend = backend,
                                                         .memory = *memory,
                                                         .weights = {.model = config.model(),
                                                                     .model_text = model.text,
                                                                     .stem = config.stem(),
                                                                     .data = facts}});
  });
  Trainer trainer(
      *program, backend, *memory, *job.world, communicator.get(), *train, validation.get(),
      trainer_options(resolved),
      {.on_step_begin =
           [&job](std::int64_t step) {
             job.phase = "training";
             job.step = step;
           },
       .on_step = [&](const StepReport& report) { records->on_step(report); },
       .on_evaluation_begin = [&job] { job.phase = "evaluation"; },
       .on_evaluation = [&](const StepReport& report, const Evaluation& evaluation,
                            bool best) { records->on_evaluation(report, evaluation, best); },
       .on_average_evaluation =
           [&](const StepReport& report, const Evaluation& evaluation) {
             records->on_average_evaluation(report, evaluation);
           },
       .stop_requested = &job.stop.requested()});
  job.phase = "training";
  const TrainResult result = leave_together(job, *communicator, [&] { return trainer.run(); });

  job.phase = "saving";
  job.step.reset();
  agree(*job.world, [&] { records->finish(result); });
  if (result.early_stopped)
    job.log->info("--early-stop: val_top1 has not risen in {} since step {}, so the run is over",
                  count_text(config.early_stop(), "evaluation"), result.best_step);
  if (const std::int64_t skipped = job.summary.skipped_steps; skipped > 0)
    job.log->warn("{} of {} steps were skipped: their loss or gradient was not finite", skipped,
                  result.steps);
  job.log->info("{} after {} steps; results are in {}", result.stopped ? "stopped" : "finished",
                result.steps, job.directory->root.string());
  if (!result.stopped) return ExitCode::kFinished;
  job.log->warn(
      "this version saves no checkpoints: the run cannot be continued, only its weights are kept");
  return ExitCode::kStopped;
}

}  // namespace ddp
