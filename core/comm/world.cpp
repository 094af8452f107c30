#include "core/comm/world.h"

#include <algorithm>

namespace ddp {
namespace {

/// "3 sentence"; the code is 0 when the section went well.
std::string outcome_of(const std::function<void()>& section) {
  const auto failed = [](ExitCode code, const char* sentence) {
    return fmt::format("{} {}", static_cast<int>(code), sentence);
  };
  try {
    section();
    return failed(ExitCode::kFinished, "");
  } catch (const Error& error) {
    return failed(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return failed(ExitCode::kMemory,
                  "the host has no memory left; use a smaller batch or fewer ranks on this host");
  } catch (const std::exception& error) {
    return failed(ExitCode::kInternal, error.what());
  }
}

}  // namespace

void agree(World& world, const std::function<void()>& section) {
  const std::vector<std::string> outcomes = world.gather(outcome_of(section));
  const auto first = std::ranges::find_if(
      outcomes, [](const std::string& text) { return !text.starts_with("0 "); });
  if (first == outcomes.end()) return;
  const bool everywhere =
      std::ranges::all_of(outcomes, [&](const std::string& text) { return text == *first; });
  const std::size_t space = first->find(' ');
  throw AgreedFailure({.rank = everywhere ? kAllRanks : static_cast<int>(first - outcomes.begin()),
                       .code = static_cast<ExitCode>(std::stoi(first->substr(0, space))),
                       .sentence = first->substr(space + 1)});
}

}  // namespace ddp
