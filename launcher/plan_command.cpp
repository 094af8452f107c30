#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/plan/describe.h"
#include "core/plan/hash.h"
#include "launcher/commands.h"
#include "launcher/setup.h"

namespace ddp {
namespace {

// Input of the built-in models when no data is read.
constexpr int kClasses = 10;
const Shape kImage{28, 28, 1};

int ranks_it_runs_under() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"})
    if (const char* value = std::getenv(name)) return std::atoi(value);
  return 1;
}

}  // namespace

ExitCode plan_command(const PlanRequest& request) {
  const int ranks = request.ranks.value_or(std::max(ranks_it_runs_under(), 2));
  if (ranks < 1) throw ConfigError("--ranks: {} is below 1", ranks);
  ResolvedConfig resolved;
  resolved.configuration = request.configuration;
  resolved.batch = resolve_batch(request.configuration, ranks);
  resolved.total_steps = 1;
  const TrainConfig& config = resolved.configuration.values;
  const DataFacts data{.image = kImage,
                       .classes = config.has_classes() ? config.classes() : kClasses,
                       .mean = {0},
                       .stddev = {1}};
  const KernelContext kernels{.threads = std::max(config.threads(), 1)};
  const Program program(program_options(resolved, data, ranks, kernels));
  const Plan& last = program.micro_step(resolved.batch.accum - 1);
  const PlanFacts facts{
      .model = config.model(),
      .ranks = ranks,
      .micro_batch = resolved.batch.micro,
      .accum = resolved.batch.accum,
      .schedule_hash = schedule_hash(program.schedule_text()),
      .kernel_hash =
          kernel_hash(program.plans(), make_cpu_backend(kernels.threads)->library_versions())};
  std::printf("%s", describe_plan(last, program.graph(), program.layout(), facts).c_str());
  if (!request.json.empty())
    write_file_atomically(request.json,
                          plan_json(last, program.graph(), program.layout(), facts).dump(2) + "\n");
  return ExitCode::kFinished;
}

ExitCode config_command(const Configuration& configuration, PrintStyle style) {
  std::printf("%s", print_config(configuration, style).c_str());
  return ExitCode::kFinished;
}

}  // namespace ddp
