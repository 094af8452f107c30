#include "launcher/scoring.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "core/base/version.h"
#include "core/telemetry/progress.h"

namespace ddp {
namespace {

/// The configuration with what the weight file decides.
Configuration with_weights(Configuration configuration, const SafetensorsFile& file,
                           const WeightsInfo& weights) {
  TrainConfig& config = configuration.values;
  config.set_model(weights.model);
  config.set_stem(weights.stem);
  config.set_classes(weights.data.classes);
  const bool fp64 = std::ranges::any_of(
      file.tensors(), [](const FileTensor& tensor) { return tensor.type.dtype == DType::kF64; });
  config.set_precision(fp64 ? "fp64" : "fp32");
  // Synthetic images are those that the model was made for.
  const Shape& image = weights.data.image;
  config.set_synthetic_image(fmt::format("{}x{}x{}", image[2], image[0], image[1]));
  return configuration;
}

}  // namespace

Scoring prepare_scoring(Job& job, Split split) {
  const std::filesystem::path path = job.command.scoring.weights;
  Scoring scoring;
  std::unique_ptr<SafetensorsFile> file;
  models::ChosenModel model;
  agree(*job.world, [&] {
    file = std::make_unique<SafetensorsFile>(path);
    scoring.weights = weights_info(*file, path);
    const WeightsInfo& info = scoring.weights;
    model = info.model_text.empty() ? models::choose_model(info.model)
                                    : models::model_from_text(info.model_text, info.model);
    scoring.configuration =
        with_input(with_weights(job.command.configuration, *file, info), model.input);
  });
  scoring.device = choose_device(job, scoring.configuration);
  Backend& backend = *scoring.device.backend;
  if (const std::string tensor = first_not_finite(*file); !tensor.empty())
    job.log->warn("{}: tensor {} holds numbers that are not finite", path.string(), tensor);
  scoring.data = open_data(job, scoring.configuration, split, scoring.weights.data);
  const DatasetInfo& data = scoring.data->info();
  ResolvedConfig resolved;
  agree(*job.world, [&] {
    if (data.image != scoring.weights.data.image)
      throw ConfigError("{} takes images of {}, {} holds images of {}", path.string(),
                        scoring.weights.data.image.to_string(), data.source,
                        data.image.to_string());
    // The training graph is built for the layout of its parameters and never runs: any batch will
    // do that every model takes.
    const std::int64_t batch = ProgramOptions().evaluation_batch;
    resolved.configuration = scoring.configuration;
    resolved.batch = {.global = batch * job.world->size(), .micro = batch, .accum = 1};
    resolved.total_steps = 1;
  });
  scoring.program =
      build_program(job, program_options(resolved, model, scoring.weights.data, job.world->size(),
                                         {backend.kind(), backend.kernel_context()}));
  scoring.memory = allocate_memory(job, backend, {&scoring.program->evaluation()});
  agree(*job.world, [&] { import_parameters(*scoring.program, backend, *scoring.memory, *file); });
  job.summary.peak_memory = {.allocated_bytes = scoring.memory->allocated_bytes(),
                             .reserved_bytes = reserved_bytes(backend, *scoring.memory)};
  job.log->info("ddptrain {} scores {} ({}) on {} {} samples of {}, {}", version(), path.string(),
                scoring.weights.model, data.size, name_of(split), data.source,
                count_text(job.world->size(), "rank"));
  return scoring;
}

Evaluation score(Job& job, const Scoring& scoring, const BatchObserver& observer) {
  job.phase = "evaluation";
  const TrainConfig& config = scoring.configuration.values;
  Evaluator evaluator(*scoring.program, *scoring.device.backend, *scoring.memory, *job.world,
                      *scoring.data,
                      {.loader_threads = config.loader_threads(), .prefetch = config.prefetch()});
  const Evaluation evaluation = evaluator.run(observer);
  job.log->info(
      "{}",
      evaluation_text({.loss = evaluation.loss, .top1 = evaluation.top1, .top5 = evaluation.top5}));
  return evaluation;
}

void check_loss_is_finite(const Job& job, const Evaluation& evaluation) {
  if (std::isfinite(evaluation.loss)) return;
  throw AgreedFailure({.rank = kAllRanks,
                       .code = ExitCode::kDiverged,
                       .sentence = fmt::format(
                           "the loss of {} on these samples is not finite, and its figures mean "
                           "nothing; take the weights of a run that did not diverge",
                           job.command.scoring.weights)});
}

}  // namespace ddp
