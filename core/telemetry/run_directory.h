// The run directory: where all files of a run stand and what they are called. Made by rank 0 before
// training; the other ranks get its path and use the same names. A directory is only ever emptied
// of files that a run writes.
#pragma once

#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>

namespace ddp {

struct RunDirectory {
  std::filesystem::path root;

  std::filesystem::path config() const { return root / "config.pbtxt"; }
  std::filesystem::path environment() const { return root / "environment.json"; }
  std::filesystem::path metrics_jsonl() const { return root / "metrics.jsonl"; }
  std::filesystem::path metrics_csv() const { return root / "metrics.csv"; }
  /// Of the run that `host` started at `start`: events.out.tfevents.1764537600.node3
  std::filesystem::path events(std::time_t start, std::string_view host) const;
  std::filesystem::path failure() const { return root / "failure.json"; }
  std::filesystem::path log(int rank) const;  ///< logs/rank-003.log
  std::filesystem::path final_weights() const { return root / "weights" / "final.safetensors"; }
  std::filesystem::path best_weights() const { return root / "weights" / "best.safetensors"; }
  std::filesystem::path average_weights() const { return root / "weights" / "ema.safetensors"; }
};

struct RunDirectoryOptions {
  std::string out;         ///< --out; empty: a new directory runs/<model>-<date>-<time>
  std::string_view model;  ///< name or file of the model, for the default name
  bool overwrite = false;  ///< --overwrite
  std::time_t now = 0;
};

/// Makes the run directory with logs/ and weights/ in it. ConfigError (exit 2) when `out` holds a
/// run and `overwrite` is off, or holds files but no run; StorageError (exit 7) when it cannot be
/// made. With `overwrite`, the files of the earlier run are removed and any other file stays.
RunDirectory create_run_directory(const RunDirectoryOptions& options);

/// "convnet-20261130-211403" in local time; of a model file, its name without directory and
/// extension.
std::string default_run_name(std::string_view model, std::time_t now);

}  // namespace ddp
