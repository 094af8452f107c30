#include "launcher/setup.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include <fmt/ranges.h>

#include "comm/bucket_plan.h"
#include "comm/mpi/mpi_communicator.h"
#include "comm/nccl_communicator.h"
#include "comm/nccl_settings.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/comm/rank_list.h"
#include "core/plan/describe.h"
#include "launcher/memory.h"
#include "models/model.h"

namespace ddp {
namespace {

constexpr int kCropPad = 2;  // pixels; what --augment crop shifts by at most

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

/// The value of a text of digits; 0 when it is too large for any limit.
std::int64_t number_or_zero(const std::string& text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// AgreedFailure when `mine` is not the same text on all ranks, showing the first line that
/// differs. Only hashes travel unless they differ.
void agree_on_text(World& world, const std::string& mine, std::string_view what) {
  const std::vector<std::string> hashes = world.gather(hash64_hex(mine));
  if (std::ranges::all_of(hashes, [&](const std::string& hash) { return hash == hashes[0]; }))
    return;
  const std::vector<std::string> all = world.gather(mine);
  const auto other =
      std::ranges::find_if(all, [&](const std::string& text) { return text != all[0]; });
  std::vector<int> ranks;
  for (int rank = 0; rank < world.size(); ++rank)
    if (all[static_cast<std::size_t>(rank)] == *other) ranks.push_back(rank);
  const std::vector<std::string> first = lines_of(all[0]), second = lines_of(*other);
  std::size_t line = 0;
  while (line < first.size() && line < second.size() && first[line] == second[line]) ++line;
  const auto text = [line](const std::vector<std::string>& lines) {
    return line < lines.size() ? lines[line] : std::string("(nothing)");
  };
  throw AgreedFailure(
      {.rank = kAllRanks,
       .code = ExitCode::kUsage,
       .sentence = fmt::format("the ranks do not have the same {}; use the same program and files "
                               "everywhere. The first difference:\n  rank 0: {}\n  {}: {}",
                               what, text(first), rank_list(ranks), text(second))});
}

LrSchedule schedule_of(const ResolvedConfig& resolved) {
  const TrainConfig& config = resolved.configuration.values;
  LrSchedule schedule{.kind = lr_kind(config.schedule()),
                      .lr = config.lr(),
                      .min_lr = config.min_lr(),
                      .warmup_updates = static_cast<std::uint64_t>(resolved.warmup_steps),
                      .total_updates = static_cast<std::uint64_t>(resolved.total_steps),
                      .step_every = static_cast<std::uint64_t>(resolved.step_every),
                      .gamma = config.gamma(),
                      .power = config.power()};
  for (const std::int64_t step : resolved.milestones)
    add_milestone(schedule, static_cast<std::uint64_t>(step));
  return schedule;
}

OptimizerSpec optimizer_of(const ResolvedConfig& resolved) {
  const TrainConfig& config = resolved.configuration.values;
  return {.kind = config.optimizer(),
          .sgd = {.momentum = config.momentum(), .nesterov = config.nesterov()},
          .lars = {.momentum = config.momentum(), .trust = config.lars_trust()},
          .adamw = {.beta1 = config.beta1(), .beta2 = config.beta2(), .eps = config.eps()},
          .lion = {.beta1 = config.beta1(), .beta2 = config.beta2()},
          .weight_decay = config.weight_decay(),
          .decay_all = config.decay() == "all",
          .ema = config.ema(),
          .finish = {.nominal = static_cast<double>(resolved.batch.global),
                     .clip_norm = config.clip_norm(),
                     .stop_on_nan = config.on_nan() == "stop",
                     .schedule = schedule_of(resolved)}};
}

/// Settings that change what the ranks must do together, one a line.
std::string agreed_settings(const ResolvedConfig& resolved, int world_size) {
  const TrainConfig& config = resolved.configuration.values;
  std::string text =
      fmt::format("ranks {}\nglobal_batch {}\nmicro_batch {}\naccum {}\n", world_size,
                  resolved.batch.global, resolved.batch.micro, resolved.batch.accum);
  for (const int field : {TrainConfig::kPrecisionFieldNumber, TrainConfig::kSeedFieldNumber,
                          TrainConfig::kOptimizerFieldNumber, TrainConfig::kOverlapFieldNumber,
                          TrainConfig::kDecayFieldNumber, TrainConfig::kWeightDecayFieldNumber})
    text +=
        fmt::format("{} {}\n", config_field(field).name(), value_text(config, config_field(field)));
  return text;
}

}  // namespace

Configuration with_input(Configuration configuration, const models::DefaultInput& input) {
  TrainConfig& values = configuration.values;
  const auto derived = [&](int field) { configuration.origins[field] = std::string(kDerived); };
  if (!values.has_data()) {
    values.set_data(input.data);
    derived(TrainConfig::kDataFieldNumber);
  }
  if (values.data() != "synthetic") return configuration;
  if (!values.has_synthetic_image()) {
    values.set_synthetic_image(fmt::format("{}x{}x{}", input.channels, input.height, input.width));
    derived(TrainConfig::kSyntheticImageFieldNumber);
  }
  if (!values.has_classes()) {
    values.set_classes(input.classes);
    derived(TrainConfig::kClassesFieldNumber);
  }
  return configuration;
}

Shape synthetic_image(const Configuration& configuration) {
  const std::vector<std::string> parts = split(configuration.values.synthetic_image(), 'x');
  const std::string where = describe_value(configuration, TrainConfig::kSyntheticImageFieldNumber);
  if (parts.size() != 3 || !std::ranges::all_of(parts, is_number))
    throw ConfigError("{}: images have channels x height x width, as 3x32x32", where);
  const std::int64_t channels = number_or_zero(parts[0]), height = number_or_zero(parts[1]),
                     width = number_or_zero(parts[2]);
  if (channels < 1 || channels > models::kMaxChannels || std::min(height, width) < 1 ||
      std::max(height, width) > models::kMaxSide)
    throw ConfigError("{}: images have 1 to {} channels and sides of 1 to {} pixels", where,
                      models::kMaxChannels, models::kMaxSide);
  return {height, width, channels};
}

std::unique_ptr<Dataset> open_data(Job& job, const Configuration& configuration, Split split,
                                   const DataFacts& trained_on) {
  const TrainConfig& config = configuration.values;
  const bool train = split == Split::kTrain;
  std::unique_ptr<Dataset> dataset;
  agree(*job.world, [&] {
    dataset = open_dataset(
        {.data = config.data(),
         .limit = train ? config.limit_train() : config.limit_val(),
         .synthetic_size = train ? config.synthetic_train() : config.synthetic_val(),
         .synthetic_image =
             config.data() == "synthetic" ? synthetic_image(configuration) : Shape{1, 1, 1},
         .classes = config.classes(),
         .seed = static_cast<std::uint64_t>(config.seed()),
         .mean = trained_on.mean,
         .stddev = trained_on.stddev},
        split);
  });
  const DatasetInfo& info = dataset->info();
  agree_on_text(*job.world,
                fmt::format("{} samples of {}, {} classes, mean {}, standard deviation {}",
                            info.size, info.image.to_string(), info.classes,
                            fmt::join(info.mean, " "), fmt::join(info.stddev, " ")),
                fmt::format("{} data", name_of(split)));
  return dataset;
}

DataFacts data_facts(const TrainConfig& config, const DatasetInfo& info) {
  if (config.has_classes() && config.classes() < info.classes)
    throw ConfigError("--classes {} is below the {} classes of {}", config.classes(), info.classes,
                      info.source);
  return {.image = info.image,
          .classes = config.has_classes() ? config.classes() : info.classes,
          .mean = info.mean,
          .stddev = info.stddev};
}

models::ModelOptions model_options(const TrainConfig& config, int classes, bool training) {
  return {.classes = classes,
          .dropout = config.dropout(),
          .training = training,
          .seed = static_cast<std::uint64_t>(config.seed()),
          .stem = config.stem() == "small"      ? models::Stem::kSmall
                  : config.stem() == "imagenet" ? models::Stem::kImageNet
                                                : models::Stem::kAuto};
}

ProgramOptions program_options(const ResolvedConfig& resolved, const models::ChosenModel& model,
                               const DataFacts& data, int world_size, const ComputeOn& on) {
  const TrainConfig& config = resolved.configuration.values;
  const bool crop = config.augment() == "crop" || config.augment() == "crop-flip";
  const bool flip = config.augment() == "flip" || config.augment() == "crop-flip";
  const DType compute = compute_type(config.precision());
  ProgramOptions options;
  options.model = [build = model.build, for_training = model_options(config, data.classes, true),
                   for_evaluation = model_options(config, data.classes, false)](
                      Graph& graph, const ModelInputs& inputs, bool training) {
    models::ModelOptions with_inputs = training ? for_training : for_evaluation;
    with_inputs.sample_ids = inputs.sample_ids;
    with_inputs.sample_weights = inputs.sample_weights;
    return build(graph, inputs.images, with_inputs);
  };
  options.buckets = [compute, bytes = config.bucket_mb() * 1024 * 1024](const ReadyList& ready) {
    return comm::bucket_plan(ready, comm::LinkModel{},
                             {.element_bytes = size_of(master_dtype(compute)),
                              .bytes = static_cast<std::size_t>(bytes)});
  };
  options.image = data.image;
  options.classes = data.classes;
  options.mean = data.mean;
  options.stddev = data.stddev;
  options.micro_batch = resolved.batch.micro;
  options.accum = resolved.batch.accum;
  options.world_size = world_size;
  options.compute = compute;
  options.seed = static_cast<std::uint64_t>(config.seed());
  options.crop_pad = crop ? kCropPad : 0;
  options.flip = flip;
  options.label_smoothing = config.label_smoothing();
  options.overlap = config.overlap() == "on";
  options.recompute = config.recompute() == "block";
  options.optimizer = optimizer_of(resolved);
  options.settings = agreed_settings(resolved, world_size);
  options.backend = on.kind;
  options.kernels = on.kernels;
  return options;
}

std::string describe_recomputation(const Program& program) {
  if (!program.options().recompute) return "";
  return recomputation_line(program.micro_step(0),
                            first_plan_without_recomputation(program.options()));
}

std::unique_ptr<Program> build_program(Job& job, const ProgramOptions& options) {
  check_that_it_fits(job, options);
  std::unique_ptr<Program> program;
  agree(*job.world, [&] { program = std::make_unique<Program>(options); });
  agree_on_text(*job.world, program->schedule_text(), "step plan");
  return program;
}

std::unique_ptr<RunMemory> allocate_memory(Job& job, Backend& backend,
                                           const std::vector<const Plan*>& plans,
                                           Buffer gradients) {
  std::unique_ptr<RunMemory> memory;
  agree(*job.world,
        [&] { memory = std::make_unique<RunMemory>(backend, plans, std::move(gradients)); });
  return memory;
}

std::size_t reserved_bytes(const Backend& backend, const RunMemory& memory) {
  return backend.reserved_bytes().value_or(memory.allocated_bytes());
}

std::unique_ptr<Communicator> make_communicator(Job& job, Backend& backend, bool deterministic) {
  if (backend.kind() == BackendKind::kCpu)
    return comm::make_mpi_communicator(job.session, *job.world);
  std::vector<std::string> places;
  for (const RankPlace& place : job.places)
    places.push_back(fmt::format("{}, {}", place.host, place.device));
  if (const std::string settings = comm::nccl_settings();
      !settings.empty() && job.world->size() > 1)
    job.log->info("NCCL's environment: {}", settings);
  return comm::make_nccl_communicator(
      *job.world, backend, {.deterministic = deterministic, .places = std::move(places)});
}

}  // namespace ddp
