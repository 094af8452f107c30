// The human log. Only rank 0 writes to stderr, since ranks that write there at once break each
// other's lines; every rank has a file of its own with times and debug records. `main` makes the
// logger and passes it on.
#pragma once

#include <spdlog/logger.h>

#include <filesystem>
#include <memory>

namespace ddp {

using Logger = std::shared_ptr<spdlog::logger>;

/// A logger without a file. Rank 0 prints records of level info and above to stderr, warnings and
/// errors with their level in front. A record that cannot be written never throws: rank 0 says so
/// once, the other ranks are silent.
Logger make_logger(int rank);

/// From now on all records of level debug and above also go to the end of `file` (its directory is
/// made if needed), each one flushed. Call it before other threads use the logger. Throws
/// StorageError.
void add_log_file(spdlog::logger& logger, const std::filesystem::path& file);

}  // namespace ddp
