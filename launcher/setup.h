// From an agreed configuration to a rank that is ready to run: device, data, program, memory.
// Shared by train and eval.
#pragma once

#include <memory>
#include <string>

#include "core/config/resolve.h"
#include "core/data/dataset.h"
#include "core/train/parameters.h"
#include "launcher/device.h"
#include "launcher/job.h"
#include "models/choose.h"

namespace ddp {

/// Fills in what the input is when it is not configured, which depends on the model: the data set,
/// and of synthetic images the extents and the number of classes.
Configuration with_input(Configuration configuration, const models::DefaultInput& input);
/// Extents [H, W, C] of synthetic images; ConfigError when --synthetic-image is not CxHxW.
Shape synthetic_image(const Configuration& configuration);

/// What the data says that the program needs.
struct DataFacts {
  Shape image;
  int classes = 0;
  std::vector<double> mean, stddev;
};

/// Collective. Opens a data set on every rank and compares what it holds. Images are normalised as
/// those that the weights were trained on, if these are given.
std::unique_ptr<Dataset> open_data(Job& job, const Configuration& configuration, Split split,
                                   const DataFacts& trained_on = {});
/// Classes as configured, at least those of the data. ConfigError otherwise.
DataFacts data_facts(const TrainConfig& config, const DatasetInfo& info);

/// What a model depends on, but for what is an input of its graph.
models::ModelOptions model_options(const TrainConfig& config, int classes, bool training);
/// What a program is built for. A GPU without a device in `kernels` gives plans that cannot run:
/// everything but the choice of kernels and their workspace.
struct ComputeOn {
  BackendKind kind = BackendKind::kCpu;
  KernelContext kernels;
};
/// Program options of a run. Pure; `ddptrain plan` calls it without data or job.
ProgramOptions program_options(const ResolvedConfig& resolved, const models::ChosenModel& model,
                               const DataFacts& data, int world_size, const ComputeOn& on);

/// What recomputation saves in this program and costs: recomputation_line. Empty without it. Makes
/// another plan to compare with, so one rank calls it.
std::string describe_recomputation(const Program& program);

/// Collective. Builds the program, if it fits into the GPUs (AgreedFailure, exit 5), and compares
/// its schedule with all ranks; AgreedFailure (exit 2) with the first line that differs and the
/// ranks.
std::unique_ptr<Program> build_program(Job& job, const ProgramOptions& options);

/// Collective. Memory for the plans that will run; AgreedFailure (exit 5). `gradients` is where the
/// gradients lie, if not empty.
std::unique_ptr<RunMemory> allocate_memory(Job& job, Backend& backend,
                                           const std::vector<const Plan*>& plans,
                                           Buffer gradients = {});

/// Memory taken from the device: what the driver counts, or what was allocated where nobody counts.
std::size_t reserved_bytes(const Backend& backend, const RunMemory& memory);

/// Collective. The communicator for the memory of this backend.
std::unique_ptr<Communicator> make_communicator(Job& job, Backend& backend, bool deterministic);

}  // namespace ddp
