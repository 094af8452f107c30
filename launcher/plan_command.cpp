#include <algorithm>
#include <cstdio>

#include "core/base/file.h"
#include "core/plan/describe.h"
#include "core/plan/hash.h"
#include "core/telemetry/json.h"
#include "launcher/commands.h"
#include "launcher/print.h"
#include "launcher/setup.h"
#include "models/text.h"

namespace ddp {
namespace {

/// The input as it is configured; of a data set on disk, which is not read, what the model takes by
/// default.
DataFacts planned_data(const Configuration& configuration, const models::DefaultInput& input) {
  const TrainConfig& config = configuration.values;
  const Shape image = config.data() == "synthetic"
                          ? synthetic_image(configuration)
                          : Shape{input.height, input.width, input.channels};
  const auto channels = static_cast<std::size_t>(image[2]);
  return {.image = image,
          .classes = config.has_classes() ? config.classes() : input.classes,
          .mean = std::vector<double>(channels, 0.0),
          .stddev = std::vector<double>(channels, 1.0)};
}

struct PlanningDevice {
  BackendKind kind = BackendKind::kCpu;
  KernelContext kernels;
  std::unique_ptr<Backend> backend;  ///< null: a plan for GPUs, without one
};

/// Nothing of a machine is needed: a plan for GPUs leaves the choice of kernels to them where there
/// is none.
PlanningDevice planning_device(const TrainConfig& config) {
  PlanningDevice device;
  const bool on_gpu =
      config.device() == "cuda" || config.precision() == "bf16" || config.precision() == "tf32";
  if (!on_gpu) {
    device.backend = make_cpu_backend(std::max(config.threads(), 1));
  } else {
    device.kind = BackendKind::kCuda;
    if (!cuda::visible_gpus().empty())
      device.backend = cuda::make_backend(
          {.tf32 = config.precision() == "tf32", .deterministic = config.deterministic()});
  }
  if (device.backend) device.kernels = device.backend->kernel_context();
  return device;
}

/// The model's layers on images like these.
std::string model_as_text(const TrainConfig& config, const models::ChosenModel& model,
                          const DataFacts& data) {
  constexpr std::int64_t kSamples = 2;  // batch norm needs more than one
  Graph graph(DType::kF32);
  const Shape& image = data.image;
  const Value images =
      graph.input("images", {Shape{kSamples, image[0], image[1], image[2]}, DType::kF32});
  models::ModelOptions options = model_options(config, data.classes, /*training=*/true);
  options.sample_ids = graph.input("sample_ids", {Shape{kSamples}, DType::kI64});
  options.sample_weights = graph.input("weights", {Shape{kSamples}, DType::kF32});
  model.build(graph, images, options);
  return models::print_model(graph,
                             {.data = config.data(),
                              .channels = image[2],
                              .height = image[0],
                              .width = image[1],
                              .classes = data.classes},
                             options);
}

}  // namespace

ExitCode plan_command(const PlanRequest& request) {
  const int ranks = request.ranks.value_or(std::max(comm::MpiSession::launched_size(), 2));
  if (ranks < 1) throw ConfigError("--ranks: {} is below 1", ranks);
  ResolvedConfig resolved;
  const models::ChosenModel model = models::choose_model(request.configuration.values.model());
  resolved.configuration = with_optimizer_defaults(with_input(request.configuration, model.input));
  resolved.batch = resolve_batch(request.configuration, ranks);
  resolved.total_steps = 1;
  const TrainConfig& config = resolved.configuration.values;
  const DataFacts data = planned_data(resolved.configuration, model.input);
  if (request.dump_model) {
    print(model_as_text(config, model, data));
    return ExitCode::kFinished;
  }
  if (config.recompute() == "block")
    for (const std::string& note : model.block_notes)
      std::fprintf(stderr, "note: %s\n", note.c_str());
  const PlanningDevice device = planning_device(config);
  const ComputeOn on{.kind = device.kind, .kernels = device.kernels};
  const Program program(program_options(resolved, model, data, ranks, on));
  const Plan& last = program.micro_step(resolved.batch.accum - 1);
  const PlanFacts facts{
      .model = config.model(),
      .ranks = ranks,
      .micro_batch = resolved.batch.micro,
      .accum = resolved.batch.accum,
      .schedule_hash = schedule_hash(program.schedule_text()),
      .kernel_hash =
          kernel_hash(program.plans(), device.backend ? device.backend->library_versions() : ""),
      .recomputation = describe_recomputation(program)};
  print(describe_plan(last, program.graph(), program.layout(), facts));
  if (!request.json.empty())
    write_file_atomically(
        request.json, to_text(plan_json(last, program.graph(), program.layout(), facts), 2) + "\n");
  return ExitCode::kFinished;
}

ExitCode config_command(const Configuration& configuration, PrintStyle style) {
  print(print_config(configuration, style));
  return ExitCode::kFinished;
}

}  // namespace ddp
