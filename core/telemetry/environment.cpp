#include "core/telemetry/environment.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <google/protobuf/stubs/common.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "core/base/version.h"
#include "core/telemetry/json.h"

namespace ddp {
namespace {

constexpr std::array<std::string_view, 6> kPrefixes{"OMP_",  "GOMP_", "OPENBLAS_",
                                                    "NCCL_", "CUDA_", "UCX_"};
constexpr std::array<std::string_view, 9> kNames{
    "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_UNIVERSE_SIZE",
    "SLURM_JOB_ID",         "SLURM_JOB_NUM_NODES",        "SLURM_NTASKS",
    "SLURM_CPUS_PER_TASK",  "SLURM_JOB_PARTITION",        "SLURM_JOB_NODELIST"};

std::string protobuf_version() {
  return fmt::format("{}.{}.{}", GOOGLE_PROTOBUF_VERSION / 1'000'000,
                     GOOGLE_PROTOBUF_VERSION / 1'000 % 1'000, GOOGLE_PROTOBUF_VERSION % 1'000);
}

std::string kernel_version() {
  utsname name{};
  if (::uname(&name) != 0) return "unknown";
  return fmt::format("{} {} {}", name.sysname, name.release, name.machine);
}

/// PRETTY_NAME="Debian GNU/Linux 12 (bookworm)" of /etc/os-release.
std::string operating_system() {
  constexpr std::string_view kKey = "PRETTY_NAME=\"";
  std::ifstream file("/etc/os-release");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(kKey)) return line.substr(kKey.size(), line.rfind('"') - kKey.size());
  return "unknown";
}

OrderedJson to_object(const NamedTexts& texts) {
  OrderedJson object = OrderedJson::object();
  for (const auto& [name, text] : texts) object[name] = text;
  return object;
}

}  // namespace

bool is_recorded_variable(std::string_view name) {
  return std::ranges::find(kNames, name) != kNames.end() ||
         std::ranges::any_of(kPrefixes, [&](std::string_view p) { return name.starts_with(p); });
}

NamedTexts recorded_variables(const char* const* environment) {
  NamedTexts recorded;
  for (; *environment != nullptr; ++environment) {
    const std::string_view text = *environment;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos && is_recorded_variable(text.substr(0, equals)))
      recorded.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  std::ranges::sort(recorded);
  return recorded;
}

std::string environment_json(const Environment& environment) {
  OrderedJson versions{
      {"ddptrain", version()},      {"commit", commit()},
      {"compiler", compiler()},     {"protobuf", protobuf_version()},
      {"kernel", kernel_version()}, {"operating_system", operating_system()},
  };
  versions.update(to_object(environment.library_versions));

  OrderedJson ranks = OrderedJson::array();
  for (const RankPlace& place : environment.ranks)
    ranks.push_back({{"rank", ranks.size()},
                     {"host", place.host},
                     {"device", place.device},
                     {"threads", place.threads}});

  const OrderedJson json{
      {"command_line", environment.command_line},
      {"working_directory", environment.working_directory},
      {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(environment.date))},
      {"versions", versions},
      {"ranks", ranks},
      {"variables", to_object(environment.variables)},
  };
  return to_text(json, 2) + '\n';
}

}  // namespace ddp
