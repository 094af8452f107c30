#include "launcher/output_file.h"

#include <algorithm>

#include <fmt/ranges.h>

namespace ddp {

std::unique_ptr<AtomicFile> open_output(Job& job, std::string_view option, const std::string& path,
                                        const std::vector<std::string>& endings) {
  std::unique_ptr<AtomicFile> file;
  agree(*job.world, [&] {
    if (path.empty()) return;
    if (std::ranges::count(endings, std::filesystem::path(path).extension().string()) == 0)
      throw ConfigError("{} {}: name a file that ends with {}", option, path,
                        fmt::join(endings, " or "));
    if (job.world->rank() == 0) file = std::make_unique<AtomicFile>(path);
  });
  return file;
}

}  // namespace ddp
