#include "core/base/log.h"

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"

namespace ddp {
namespace {

/// "warning: " and "error: ", nothing for ordinary records.
class LevelPrefix : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    if (message.level < spdlog::level::warn) return;
    const auto name = spdlog::level::to_string_view(message.level);
    out.append(name.begin(), name.end());
    out.append(std::string_view(": "));
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<LevelPrefix>();
  }
};

}  // namespace

Logger make_logger(int rank) {
  auto logger = std::make_shared<spdlog::logger>(fmt::format("rank-{:03}", rank));
  logger->set_level(spdlog::level::debug);
  logger->flush_on(spdlog::level::debug);
  logger->set_error_handler(
      [rank, said = std::make_shared<std::atomic_flag>()](const std::string& reason) {
        if (rank == 0 && !said->test_and_set())
          std::fprintf(stderr, "warning: the log is incomplete: %s\n", reason.c_str());
      });
  if (rank == 0) {
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<LevelPrefix>('*').set_pattern("%*%v");
    auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    sink->set_level(spdlog::level::info);
    sink->set_formatter(std::move(formatter));
    logger->sinks().push_back(std::move(sink));
  }
  return logger;
}

void add_log_file(spdlog::logger& logger, const std::filesystem::path& file) {
  if (file.has_parent_path()) make_directories(file.parent_path());
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string());
    sink->set_level(spdlog::level::debug);
    sink->set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %v");
    logger.sinks().push_back(std::move(sink));
  } catch (const spdlog::spdlog_ex& error) {
    throw StorageError("cannot open the log file: {}", error.what());
  }
}

}  // namespace ddp
