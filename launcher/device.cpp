#include "launcher/device.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>

#include "core/base/text.h"
#include "core/comm/rank_list.h"
#include "core/config/resolve.h"

namespace ddp {
namespace {

constexpr int kOldestMajor = 8;  // compute capability that kernels are built for
// What a process that only starts up takes of a GPU is less; more belongs to somebody else.
constexpr std::size_t kHeldByOthers = std::size_t{2} << 30;

bool needs_gpu(const std::string& device, const std::string& precision) {
  return device == "cuda" || precision == "bf16" || precision == "tf32";
}

/// "--precision bf16" or "--device cuda", whichever asks for a GPU.
std::string who_needs_it(const std::string& device, const std::string& precision) {
  return device == "cuda" ? "--device cuda" : "--precision " + precision;
}

DeviceDecision on_cpu(const std::string& precision, std::string note) {
  return {.kind = BackendKind::kCpu,
          .ordinals = {},
          .precision = precision.empty() ? "fp32" : precision,
          .note = std::move(note),
          .warnings = {}};
}

std::vector<int> ranks_where(const std::vector<RankSight>& ranks, auto&& holds) {
  std::vector<int> found;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    if (holds(ranks[rank])) found.push_back(static_cast<int>(rank));
  return found;
}

/// The GPU of each rank: its local rank's, or the only one that it sees (a scheduler has chosen).
std::vector<int> assign(const std::vector<RankSight>& ranks) {
  std::map<std::string, std::map<std::string, int>> owner;  // by host and GPU
  std::vector<int> ordinals;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankSight& sight = ranks[rank];
    const std::size_t ordinal =
        sight.gpus.size() == 1 ? 0 : static_cast<std::size_t>(sight.local_rank);
    const auto on_host = std::ranges::count(ranks, sight.host, &RankSight::host);
    const std::string remedy = fmt::format(
        "start one rank per GPU (mpirun -np {0}), or give --device cpu", sight.gpus.size());
    if (ordinal >= sight.gpus.size())
      throw DeviceError("{} runs {} ranks, but shows {} GPUs: {}", sight.host, on_host,
                        sight.gpus.size(), remedy);
    const cuda::GpuInfo& gpu = sight.gpus[ordinal];
    const auto [known, fresh] = owner[sight.host].emplace(gpu.uuid, static_cast<int>(rank));
    if (!fresh)
      throw DeviceError(
          "ranks {} and {} would share one GPU of {} ({}, {}), which NCCL refuses: {}",
          known->second, rank, sight.host, gpu.name, gpu.uuid, remedy);
    if (gpu.major < kOldestMajor)
      throw DeviceError(
          "rank {} on {}: {} has compute capability {}.{}, and {}.0 is the least: give --device "
          "cpu",
          rank, sight.host, gpu.name, gpu.major, gpu.minor, kOldestMajor);
    ordinals.push_back(static_cast<int>(ordinal));
  }
  return ordinals;
}

std::vector<std::string> warnings_about(const std::vector<RankSight>& ranks,
                                        const std::vector<int>& ordinals) {
  std::map<std::string, std::vector<int>> by_name;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    by_name[ranks[rank].gpus[static_cast<std::size_t>(ordinals[rank])].name].push_back(
        static_cast<int>(rank));
  if (by_name.size() == 1) return {};
  std::string text;
  for (const auto& [name, of] : by_name)
    text += fmt::format("{}{} on {}", text.empty() ? "" : ", ", name, rank_list(of));
  return {"the GPUs are of different models, and each step waits for the slowest: " + text};
}

RankSight look(const World& world) {
  RankSight sight{.host = world.host_name(),
                  .local_rank = world.local_rank(),
                  .gpus = {},
                  .trouble = {},
                  .why_none = {}};
  try {
    sight.gpus = cuda::visible_gpus();
    if (sight.gpus.empty()) sight.why_none = cuda::why_no_gpu();
  } catch (const DeviceError& error) {
    sight.trouble = error.what();
  }
  return sight;
}

/// As lines: host, local rank, trouble, why there is none, then name, uuid and capability of each
/// GPU.
std::string pack(const RankSight& sight) {
  std::string text =
      fmt::format("{}\n{}\n{}\n{}\n", sight.host, sight.local_rank, sight.trouble, sight.why_none);
  for (const cuda::GpuInfo& gpu : sight.gpus)
    text += fmt::format("{}\n{}\n{}\n{}\n", gpu.name, gpu.uuid, gpu.major, gpu.minor);
  return text;
}

RankSight unpack(const std::string& text) {
  std::istringstream stream(text);
  const auto line = [&stream] {
    std::string read;
    std::getline(stream, read);
    return read;
  };
  RankSight sight;
  sight.host = line();
  sight.local_rank = std::stoi(line());
  sight.trouble = line();
  sight.why_none = line();
  for (std::string name = line(); !name.empty(); name = line()) {
    cuda::GpuInfo gpu{.ordinal = static_cast<int>(sight.gpus.size()), .name = name, .uuid = line()};
    gpu.major = std::stoi(line());
    gpu.minor = std::stoi(line());
    sight.gpus.push_back(std::move(gpu));
  }
  return sight;
}

/// The CPU computes with all cores but reads little; a GPU computes by itself and reads much.
int loader_threads(BackendKind kind, const ThreadPlacement& placement) {
  constexpr int kMost = 16;
  return kind == BackendKind::kCpu ? 1
                                   : std::clamp(placement.cores / placement.sharing - 1, 1, kMost);
}

/// Environment that CUDA reads when it starts.
void prepare_cuda(int ranks) {
  const char* blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  if (ranks > 1 && blocking != nullptr && std::string_view(blocking) == "1")
    throw ConfigError(
        "CUDA_LAUNCH_BLOCKING=1 makes NCCL's collectives wait for each other for ever with more "
        "than one rank: unset it");
  // A kernel that is loaded while a collective runs waits for it, and it for the kernel of a peer.
  if (ranks > 1) setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);
}

void warn_about_memory(Job& job) {
  const cuda::GpuMemory memory = cuda::gpu_memory();
  const std::size_t used = memory.total_bytes - memory.free_bytes;
  const std::vector<std::string> all =
      job.world->gather(used > kHeldByOthers ? human_bytes(used) : std::string());
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (!all[rank].empty())
      job.log->warn(
          "rank {} ({}, {}): {} of the GPU's memory are in use already, by another process", rank,
          job.places[rank].host, job.places[rank].device, all[rank]);
}

}  // namespace

DType compute_type(const std::string& precision) {
  if (precision == "fp64") return DType::kF64;
  return precision == "bf16" ? DType::kBF16 : DType::kF32;
}

DeviceDecision decide_device(const std::vector<RankSight>& ranks, const std::string& device,
                             const std::string& precision) {
  const bool gpu_needed = needs_gpu(device, precision);
  if (device == "cuda" && precision == "fp64")
    throw ConfigError(
        "--precision fp64 is for checks on the CPU only, but --device cuda asks for a GPU");
  if (device == "cpu" && gpu_needed)
    throw ConfigError("--precision {} needs a GPU, but --device cpu excludes one: use fp32 or fp64",
                      precision);
  if (device == "cpu") return on_cpu(precision, "");
  if (precision == "fp64") return on_cpu(precision, "auto: fp64 is computed on the CPU");

  const std::vector<int> troubled =
      ranks_where(ranks, [](const RankSight& s) { return !s.trouble.empty(); });
  if (!troubled.empty()) {
    const RankSight& first = ranks[static_cast<std::size_t>(troubled[0])];
    throw DeviceError("{} on {}: {}; or give --device cpu", rank_list(troubled), first.host,
                      first.trouble);
  }
  const std::vector<int> without =
      ranks_where(ranks, [](const RankSight& s) { return s.gpus.empty(); });
  if (without.size() == ranks.size() && !gpu_needed)
    return on_cpu(precision, "auto: " + ranks[0].why_none);
  if (!without.empty()) {
    const RankSight& first = ranks[static_cast<std::size_t>(without[0])];
    throw DeviceError("{}: {} on {} has no GPU: {}; use --device cpu{}",
                      gpu_needed ? who_needs_it(device, precision) : "the other ranks have GPUs",
                      rank_list(without), first.host, first.why_none,
                      precision.empty() ? "" : " --precision fp32");
  }
  DeviceDecision decision{.kind = BackendKind::kCuda,
                          .ordinals = assign(ranks),
                          .precision = precision.empty() ? "bf16" : precision,
                          .note = {},
                          .warnings = {}};
  decision.warnings = warnings_about(ranks, decision.ordinals);
  return decision;
}

Device choose_device(Job& job, Configuration& configuration) {
  World& world = *job.world;
  TrainConfig& config = configuration.values;
  std::vector<RankSight> sights;
  for (const std::string& text : world.gather(pack(look(world)))) sights.push_back(unpack(text));
  DeviceDecision decision;
  agree(world, [&] {
    decision =
        decide_device(sights, config.device(), config.has_precision() ? config.precision() : "");
    if (decision.kind == BackendKind::kCuda) prepare_cuda(world.size());
  });
  Device device{.placement = place_threads(world, config.keep_binding(), config.threads()),
                .backend = nullptr,
                .note = decision.note};
  derive(
      configuration, TrainConfig::kPrecisionFieldNumber,
      [](TrainConfig& values, const std::string& precision) { values.set_precision(precision); },
      decision.precision);
  derive(configuration, TrainConfig::kLoaderThreadsFieldNumber, &TrainConfig::set_loader_threads,
         loader_threads(decision.kind, device.placement));
  agree(world, [&] {
    if (decision.kind == BackendKind::kCpu)
      device.backend = make_cpu_backend(device.placement.threads);
    else
      device.backend =
          cuda::make_backend({.ordinal = decision.ordinals[static_cast<std::size_t>(world.rank())],
                              .tf32 = config.precision() == "tf32",
                              .deterministic = config.deterministic()});
  });
  const std::vector<std::string> names = world.gather(device.backend->device_name());
  const std::vector<std::string> threads = world.gather(std::to_string(device.placement.threads));
  for (std::size_t rank = 0; rank < names.size(); ++rank)
    job.places.push_back(
        {.host = sights[rank].host, .device = names[rank], .threads = std::stoi(threads[rank])});
  for (const std::string& warning : decision.warnings) job.log->warn("{}", warning);
  if (decision.kind == BackendKind::kCuda) warn_about_memory(job);
  return device;
}

}  // namespace ddp
