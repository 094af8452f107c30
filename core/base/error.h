// One error type for the whole program: every failure carries the exit code of its class and a
// sentence that says what happened, where, and what to do. Thrown where the facts are; caught once,
// in the launcher.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace ddp {

/// Exit codes of `ddptrain`, the same on every rank.
enum class ExitCode : int {
  kFinished = 0,
  kInternal = 1,
  kUsage = 2,
  kData = 3,
  kDevice = 4,
  kMemory = 5,
  kCommunication = 6,
  kStorage = 7,
  kDiverged = 8,
  kRegression = 9,
  kStopped = 75,
};

/// Base of all errors. `what()` is the whole sentence.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// A flag, a configuration file or a model definition is wrong (exit 2).
class ConfigError : public Error {
 public:
  template <class... Args>
  explicit ConfigError(fmt::format_string<Args...> format, Args&&... args)
      : Error(ExitCode::kUsage, fmt::format(format, std::forward<Args>(args)...)) {}
};

/// A data file is wrong (exit 3). The sentence opens with the file, and the record where there is
/// one.
class DataError : public Error {
 public:
  template <class... Args>
  DataError(std::string_view file, fmt::format_string<Args...> format, Args&&... args)
      : Error(ExitCode::kData,
              fmt::format("{}: {}", file, fmt::format(format, std::forward<Args>(args)...))) {}
};

/// A data file is wrong at one record (exit 3).
class RecordError : public Error {
 public:
  template <class... Args>
  RecordError(std::string_view file, long record, fmt::format_string<Args...> format,
              Args&&... args)
      : Error(ExitCode::kData, fmt::format("{}, record {}: {}", file, record,
                                           fmt::format(format, std::forward<Args>(args)...))) {}
};

/// Each further class of failure: the same constructor, another exit code.
#define DDP_ERROR_CLASS(Name, exit_code)                                        \
  class Name : public Error {                                                   \
   public:                                                                      \
    template <class... Args>                                                    \
    explicit Name(fmt::format_string<Args...> format, Args&&... args)           \
        : Error(exit_code, fmt::format(format, std::forward<Args>(args)...)) {} \
  }

DDP_ERROR_CLASS(DeviceError, ExitCode::kDevice);
DDP_ERROR_CLASS(MemoryError, ExitCode::kMemory);
DDP_ERROR_CLASS(CommunicationError, ExitCode::kCommunication);
DDP_ERROR_CLASS(StorageError, ExitCode::kStorage);

/// A broken invariant of the program itself (exit 1); says where in the code.
class InternalError : public Error {
 public:
  InternalError(const std::string& sentence, std::source_location where)
      : Error(ExitCode::kInternal,
              fmt::format("{} ({}:{}); this is a defect of ddptrain, please report it", sentence,
                          where.file_name(), where.line())) {}
};

/// Checks an invariant of the program; `DDP_CHECK(a == b, "slab holds {} bytes, plan needs {}", a,
/// b)`.
#define DDP_CHECK(condition, ...)                                                              \
  do {                                                                                         \
    if (!(condition)) [[unlikely]]                                                             \
      throw ::ddp::InternalError(::fmt::format(__VA_ARGS__), std::source_location::current()); \
  } while (false)

}  // namespace ddp
