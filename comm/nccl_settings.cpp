#include "comm/nccl_settings.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string_view>

#include <unistd.h>

#include "core/base/error.h"

namespace ddp::comm {
namespace {

constexpr std::string_view kPrefix = "NCCL_";
constexpr const char* kAlgorithmVariable = "NCCL_ALGO";

/// NCCL compares names of algorithms so.
bool equal_without_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

NcclVariables nccl_variables() {
  NcclVariables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (text.starts_with(kPrefix) && equals != std::string_view::npos)
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

std::string describe_nccl_variables(const NcclVariables& variables) {
  std::string text;
  for (const auto& [name, value] : variables)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text.empty() ? "none set" : text;
}

bool needs_deterministic_algorithm(const NcclVariables& variables) {
  const auto set = variables.find(kAlgorithmVariable);
  if (set == variables.end() || set->second.empty()) return true;
  if (equal_without_case(set->second, kDeterministicAlgorithm)) return false;
  throw ConfigError(
      "--deterministic needs {0}={1} for sums that are the same in every run, but the environment "
      "says {0}={2}; unset {0}, or leave out --deterministic",
      kAlgorithmVariable, kDeterministicAlgorithm, set->second);
}

void request_deterministic_algorithm() {
  if (needs_deterministic_algorithm(nccl_variables()))
    setenv(kAlgorithmVariable, kDeterministicAlgorithm, /*overwrite=*/1);
}

}  // namespace ddp::comm
