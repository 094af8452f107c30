#include "tests/support/training/training.h"

#include <cmath>
#include <map>
#include <mutex>

#include "comm/bucket_plan.h"
#include "comm/fake/fake_cluster.h"
#include "core/base/hash.h"
#include "models/model.h"

namespace ddp::test {
namespace {

std::unique_ptr<Dataset> data_for(const TrainingRun& run, Split split) {
  return open_dataset(
      {.data = "synthetic",
       .limit = 0,
       .synthetic_size = split == Split::kTrain ? run.train_samples : run.validation_samples,
       .synthetic_image = run.image,
       .classes = 10,
       .seed = run.seed},
      split);
}

std::string hash_of(const std::vector<NamedTensor>& tensors) {
  std::string text;
  for (const NamedTensor& tensor : tensors)
    text += hash64_hex(std::span<const std::byte>(tensor.bytes));
  return text;
}

double element(const NamedTensor& tensor, std::size_t i) {
  return tensor.type.dtype == DType::kF64
             ? reinterpret_cast<const double*>(tensor.bytes.data())[i]
             : static_cast<double>(reinterpret_cast<const float*>(tensor.bytes.data())[i]);
}

}  // namespace

ProgramOptions program_options(const TrainingRun& run, const DatasetInfo& data) {
  ProgramOptions options;
  options.model = [run](Graph& graph, const ModelInputs& inputs, bool training) {
    return models::find_model(run.model).build(graph, inputs.images,
                                               {.classes = 10,
                                                .dropout = run.dropout,
                                                .training = training,
                                                .seed = run.seed,
                                                .sample_ids = inputs.sample_ids,
                                                .sample_weights = inputs.sample_weights});
  };
  options.buckets = [run](const ReadyList& ready) {
    return comm::bucket_plan(
        ready, comm::LinkModel{},
        {.element_bytes = size_of(master_dtype(run.compute)), .bytes = run.bucket_bytes});
  };
  options.image = data.image;
  options.classes = data.classes;
  options.mean = data.mean;
  options.stddev = data.stddev;
  options.micro_batch = run.global_batch / run.ranks / run.accum;
  options.accum = run.accum;
  options.world_size = run.ranks;
  options.compute = run.compute;
  options.backend = run.backend ? run.backend->kind() : BackendKind::kCpu;
  options.kernels =
      run.backend ? run.backend->kernel_context() : KernelContext{.threads = run.threads};
  options.seed = run.seed;
  options.crop_pad = 1;
  options.flip = true;
  options.overlap = run.overlap;
  options.recompute = run.recompute;
  options.optimizer.kind = run.optimizer;
  options.optimizer.ema = run.ema;
  options.optimizer.sgd = {.momentum = 0.9, .nesterov = true};
  options.optimizer.weight_decay = 5e-4;
  options.optimizer.finish.nominal = static_cast<double>(run.global_batch);
  options.optimizer.finish.clip_norm = run.clip_norm;
  options.optimizer.finish.stop_on_nan = run.on_nan == "stop";
  options.optimizer.finish.schedule = {.kind = LrKind::kCosine,
                                       .lr = run.learning_rate,
                                       .warmup_updates = 2,
                                       .total_updates = static_cast<std::uint64_t>(run.steps)};
  return options;
}

TrainingOutcome train(const TrainingRun& run) {
  const std::unique_ptr<Dataset> train_data = data_for(run, Split::kTrain);
  const std::unique_ptr<Dataset> validation = data_for(run, Split::kValidation);
  TrainingOutcome outcome;
  outcome.replica_hashes.resize(static_cast<std::size_t>(run.ranks));
  outcome.results.resize(static_cast<std::size_t>(run.ranks));
  std::mutex mutex;
  comm::FakeCluster(run.ranks).run([&](World& world, Communicator& communicator) {
    const std::unique_ptr<Backend> cpu = make_cpu_backend(run.threads);
    Backend* const backend = run.backend ? run.backend : cpu.get();
    const Program program(program_options(run, train_data->info()));
    const RunMemory memory(*backend, program.plans());
    initialize_parameters(program, *backend, memory);
    if (run.disturb) run.disturb(world.rank(), program, memory);
    start_averages(program, *backend, memory);
    std::vector<StepReport> steps;
    steps.reserve(static_cast<std::size_t>(run.steps));
    TrainerOptions options{.steps = run.steps,
                           .global_batch = run.global_batch,
                           .drop_last = run.drop_last,
                           .seed = run.seed};
    TrainerHooks hooks;
    if (run.adjust) run.adjust(world.rank(), options, hooks);
    hooks.on_step = [&steps, next = hooks.on_step](const StepReport& report) {
      steps.push_back(report);
      next(report);
    };
    Trainer trainer(program, *backend, memory, world, &communicator, *train_data, validation.get(),
                    options, hooks);
    const TrainResult result = trainer.run();
    std::vector<NamedTensor> weights = export_parameters(program, *backend, memory), averages;
    if (run.ema > 0)
      averages = export_parameters(program, *backend, averaged_weights(program, memory));
    const std::lock_guard lock(mutex);
    outcome.replica_hashes[static_cast<std::size_t>(world.rank())] =
        hash_of(weights) + hash_of(averages);
    outcome.results[static_cast<std::size_t>(world.rank())] = result;
    if (world.rank() != 0) return;
    outcome.steps = std::move(steps);
    outcome.weights = std::move(weights);
    outcome.averages = std::move(averages);
    outcome.evaluation = *result.last_evaluation;
  });
  return outcome;
}

double largest_difference(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  std::map<std::string, const NamedTensor*> by_name;
  for (const NamedTensor& tensor : b) by_name[tensor.name] = &tensor;
  double largest = 0;
  for (const NamedTensor& tensor : a) {
    const NamedTensor& other = *by_name.at(tensor.name);
    for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.type.elements()); ++i) {
      const double difference = std::abs(element(tensor, i) - element(other, i));
      if (!(difference <= largest)) largest = difference;  // NaN counts as a difference
    }
  }
  return largest;
}

}  // namespace ddp::test
