#include <algorithm>

#include "core/base/version.h"
#include "core/telemetry/progress.h"
#include "core/train/evaluate.h"
#include "launcher/commands.h"
#include "launcher/weights.h"

namespace ddp {

ExitCode eval_command(Job& job) {
  agree_on_command(job);
  Configuration configuration = job.command.configuration;
  TrainConfig& config = configuration.values;
  const std::filesystem::path path = job.command.weights;
  std::unique_ptr<SafetensorsFile> file;
  WeightsInfo info;
  agree(*job.world, [&] {
    file = std::make_unique<SafetensorsFile>(path);
    info = weights_info(*file, path);
    config.set_model(info.model);
    config.set_stem(info.stem);
    config.set_classes(info.data.classes);
    const bool fp64 = std::ranges::any_of(
        file->tensors(), [](const FileTensor& tensor) { return tensor.type.dtype == DType::kF64; });
    config.set_precision(fp64 ? "fp64" : "fp32");
    // Synthetic images are those that the model was made for.
    const Shape& image = info.data.image;
    config.set_synthetic_image(fmt::format("{}x{}x{}", image[2], image[0], image[1]));
    configuration = with_input(std::move(configuration));
  });
  const Device device = choose_device(job, config);
  Backend& backend = *device.backend;
  const std::unique_ptr<Dataset> data = open_data(job, configuration, Split::kValidation);
  ResolvedConfig resolved;
  agree(*job.world, [&] {
    if (data->info().image != info.data.image)
      throw ConfigError("{} takes images of {}, {} holds images of {}", path.string(),
                        info.data.image.to_string(), data->info().source,
                        data->info().image.to_string());
    // Evaluation has no optimizer steps: the size of the set stands in for one epoch of any length.
    resolved.configuration = configuration;
    resolved.batch = resolve_batch(configuration, job.world->size());
    resolved.total_steps = 1;
  });
  const std::unique_ptr<Program> program = build_program(
      job, program_options(resolved, info.data, job.world->size(), backend.kernel_context()));
  const std::unique_ptr<RunMemory> memory = allocate_memory(job, backend, {&program->evaluation()});
  agree(*job.world, [&] { import_parameters(*program, backend, *memory, *file); });
  job.log->info("ddptrain {} scores {} ({}) on {} validation samples of {}, {} rank{}", version(),
                path.string(), info.model, data->info().size, data->info().source,
                job.world->size(), job.world->size() == 1 ? "" : "s");

  job.phase = "evaluation";
  const Evaluation evaluation =
      Evaluator(*program, backend, *memory, *job.world, *data,
                {.loader_threads = config.loader_threads(), .prefetch = config.prefetch()})
          .run();
  job.log->info(
      "{}", evaluation_line(
                0, {.loss = evaluation.loss, .top1 = evaluation.top1, .top5 = evaluation.top5}));
  job.summary.final = {.train_loss = std::nullopt,
                       .val_loss = evaluation.loss,
                       .val_top1 = evaluation.top1,
                       .val_top5 = evaluation.top5};
  job.summary.peak_memory = {.allocated_bytes = memory->allocated_bytes(),
                             .reserved_bytes = memory->allocated_bytes()};
  return ExitCode::kFinished;
}

}  // namespace ddp
