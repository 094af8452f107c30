#include "core/telemetry/run_directory.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"

namespace ddp {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEvents = "events.out.tfevents.";

/// Whether a run writes a file of this name into this directory of its own ("", "logs", "weights").
bool is_run_file(std::string_view directory, std::string name) {
  if (name.ends_with(".tmp"))
    name.resize(name.size() - 4);  // what an interrupted atomic write leaves
  const RunDirectory run;
  if (directory == "logs") {
    const std::string_view prefix = "rank-", suffix = ".log";
    if (name.size() <= prefix.size() + suffix.size() || !name.starts_with(prefix) ||
        !name.ends_with(suffix))
      return false;
    const auto digits =
        std::string_view(name).substr(prefix.size(), name.size() - prefix.size() - suffix.size());
    return digits.find_first_not_of("0123456789") == std::string_view::npos;
  }
  if (directory.empty() && name.starts_with(kEvents)) return true;
  const std::array files{run.config(),       run.environment(),    run.metrics_jsonl(),
                         run.metrics_csv(),  run.failure(),        run.final_weights(),
                         run.best_weights(), run.average_weights()};
  return std::ranges::find(files, fs::path(directory) / name) != files.end();
}

template <class Visit>
void for_each_entry(const fs::path& directory, Visit visit) {
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    visit(*it);
  if (error)
    throw StorageError("cannot read the directory '{}': {}", directory.string(),
                       storage_reason(error.value(), FileUse::kRead));
}

struct Contents {
  std::vector<fs::path> run_files;
  bool others = false;
};

Contents contents_of(const fs::path& root) {
  Contents contents;
  const auto take = [&](std::string_view directory, const fs::directory_entry& entry) {
    if (!entry.is_directory() && is_run_file(directory, entry.path().filename().string()))
      contents.run_files.push_back(entry.path());
    else
      contents.others = true;
  };
  for_each_entry(root, [&](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    if ((name == "logs" || name == "weights") && entry.is_directory())
      for_each_entry(entry.path(), [&](const fs::directory_entry& inner) { take(name, inner); });
    else
      take("", entry);
  });
  return contents;
}

void remove_run(Contents contents, const RunDirectory& run) {
  // The configuration goes last: it marks the directory as a run should the removal be interrupted.
  std::ranges::partition(contents.run_files,
                         [&](const fs::path& file) { return file != run.config(); });
  for (const fs::path& file : contents.run_files) {
    std::error_code error;
    fs::remove(file, error);
    if (error)
      throw StorageError("cannot remove '{}' of the earlier run: {}", file.string(),
                         storage_reason(error.value()));
  }
}

/// Makes `out` usable, whatever stands there.
void prepare_given(const RunDirectory& run, bool overwrite) {
  const fs::path& root = run.root;
  std::error_code error;
  const fs::file_status status = fs::status(root, error);
  if (!fs::exists(status)) return make_directories(root);
  if (!fs::is_directory(status))
    throw ConfigError("--out {} is a file; name a directory for the run", root.string());

  const Contents contents = contents_of(root);
  const bool is_run =
      std::ranges::find(contents.run_files, run.config()) != contents.run_files.end();
  if (contents.others && !is_run)
    throw ConfigError(
        "--out {} holds other files and no run; name a new or empty directory (nothing was "
        "changed)",
        root.string());
  if (contents.run_files.empty()) return;
  if (!overwrite)
    throw ConfigError(
        "--out {} already holds a run; name another directory, or replace it with --overwrite",
        root.string());
  remove_run(contents, run);
}

/// Makes runs/<name>, or runs/<name>-2, … when another run has just taken that name.
RunDirectory make_default(const std::string& name) {
  make_directories("runs");
  for (int attempt = 1;; ++attempt) {
    const fs::path root =
        fs::path("runs") / (attempt == 1 ? name : fmt::format("{}-{}", name, attempt));
    std::error_code error;
    if (fs::create_directory(root, error)) return {root};
    if (error && error != std::errc::file_exists)
      throw StorageError("cannot create the directory '{}': {}", root.string(),
                         storage_reason(error.value()));
  }
}

}  // namespace

fs::path RunDirectory::log(int rank) const {
  return root / "logs" / fmt::format("rank-{:03}.log", rank);
}

fs::path RunDirectory::events(std::time_t start, std::string_view host) const {
  return root / fmt::format("{}{}.{}", kEvents, start, host);
}

std::string default_run_name(std::string_view model, std::time_t now) {
  const std::string stem = fs::path(model).stem().string();
  return fmt::format("{}-{:%Y%m%d-%H%M%S}", stem, fmt::localtime(now));
}

RunDirectory create_run_directory(const RunDirectoryOptions& options) {
  RunDirectory run{options.out};
  if (options.out.empty())
    run = make_default(default_run_name(options.model, options.now));
  else
    prepare_given(run, options.overwrite);
  make_directories(run.log(0).parent_path());
  make_directories(run.final_weights().parent_path());
  return run;
}

}  // namespace ddp
