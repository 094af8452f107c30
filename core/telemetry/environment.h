// environment.json: what a run ran on and how it was started, enough to explain or repeat it. Of
// the process's environment variables only those of an allow-list are recorded, since others may
// hold secrets.
#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ddp {

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

struct RankPlace {
  std::string host;
  std::string device;  ///< as the backend calls it
  int threads = 0;     ///< compute threads
};

struct Environment {
  std::vector<std::string> command_line;
  std::string working_directory;
  std::time_t date = 0;  ///< recorded in UTC
  NamedTexts
      library_versions;  ///< beyond what this module knows: {"mpi", "Open MPI 4.1.4"}, {"blas", …}
  std::vector<RankPlace> ranks;  ///< by rank
  NamedTexts variables;          ///< see recorded_variables
};

/// Those of the "NAME=value" texts (a null-terminated array like `environ`) that are recorded,
/// sorted by name.
NamedTexts recorded_variables(const char* const* environment);
bool is_recorded_variable(std::string_view name);

/// The JSON text. Adds versions of ddptrain (with its commit), compiler and protobuf, kernel and
/// operating system.
std::string environment_json(const Environment& environment);

}  // namespace ddp
