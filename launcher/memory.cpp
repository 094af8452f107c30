#include "launcher/memory.h"

#include <numeric>

#include "core/base/text.h"
#include "core/telemetry/progress.h"

namespace ddp {
namespace {

// What NCCL allocates for its channels, about.
constexpr std::size_t kCommunication = std::size_t{512} << 20;

/// The same program without kernels: it says what has to be stored, and costs no time on the GPU.
ProgramOptions without_kernels(ProgramOptions options) {
  options.kernels.gpu = nullptr;
  return options;
}

RegionBytes regions_of(const ProgramOptions& options) {
  const Program program(options);
  return region_bytes(program.plans());
}

bool fits(const ProgramOptions& options, std::size_t free_bytes) {
  return bytes_needed(regions_of(options)) <= free_bytes;
}

/// Flags under which the same global batch fits; empty when none do.
std::string flags_that_fit(ProgramOptions options, std::size_t free_bytes) {
  const std::int64_t samples = options.micro_batch * options.accum;
  for (std::int64_t accum = options.accum + 1; accum <= samples; ++accum) {
    if (samples % accum != 0) continue;
    options.accum = accum;
    options.micro_batch = samples / accum;
    try {
      if (fits(options, free_bytes))
        return fmt::format("--micro-batch {} --accum {}", options.micro_batch, accum);
    } catch (const ConfigError&) {
      return "";  // batch norm of a single value: smaller ones do not work either
    }
  }
  return "";
}

std::string advice(const ProgramOptions& options, std::size_t free_bytes) {
  std::string text;
  if (const std::string flags = flags_that_fit(options, free_bytes); !flags.empty())
    text += fmt::format("This fits and keeps the global batch: {}. ", flags);
  ProgramOptions recomputing = options;
  recomputing.recompute = true;
  try {
    if (!options.recompute && fits(recomputing, free_bytes))
      text +=
          "So does --recompute block, which computes activations again instead of keeping them. ";
  } catch (const ConfigError&) {  // the model has no blocks
  }
  if (options.compute == DType::kF32) text += "--precision bf16 halves the activations. ";
  return text.empty()
             ? "No smaller micro-batch fits either: take a smaller model or more GPU memory. "
             : text;
}

}  // namespace

std::size_t bytes_needed(const RegionBytes& regions) {
  return std::accumulate(regions.begin(), regions.end(), cuda::kWorkspaceLimit + kCommunication);
}

std::string memory_table(const RegionBytes& regions, const cuda::GpuMemory& gpu) {
  const auto of = [&](Region region) {
    return human_bytes(regions[static_cast<std::size_t>(region)]);
  };
  return two_column_table(
      {{"parameters", of(Region::kParameters)},
       {"their compute copy", of(Region::kComputeParameters)},
       {"gradients", of(Region::kGradients)},
       {"optimizer", of(Region::kOptimizer)},
       {"averaged weights", of(Region::kAverage)},
       {"activations", of(Region::kArena)},
       {"input", of(Region::kInput)},
       {"workspace, at most", human_bytes(cuda::kWorkspaceLimit)},
       {"communication, about", human_bytes(kCommunication)},
       {"needed", human_bytes(bytes_needed(regions))},
       {"free on the GPU", human_bytes(gpu.free_bytes)},
       {"in use (CUDA itself, other processes)", human_bytes(gpu.total_bytes - gpu.free_bytes)},
       {"the GPU's memory", human_bytes(gpu.total_bytes)}});
}

void check_that_it_fits(Job& job, const ProgramOptions& run) {
  if (run.backend != BackendKind::kCuda) return;
  agree(*job.world, [&] {
    const ProgramOptions options = without_kernels(run);
    const RegionBytes regions = regions_of(options);
    const cuda::GpuMemory gpu = cuda::gpu_memory();
    if (bytes_needed(regions) <= gpu.free_bytes) return;
    throw MemoryError(
        "a micro-batch of {} does not fit into the GPU's memory. {}What takes how much:\n{}",
        options.micro_batch, advice(options, gpu.free_bytes), memory_table(regions, gpu));
  });
}

}  // namespace ddp
