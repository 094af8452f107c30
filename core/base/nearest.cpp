#include "core/base/nearest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace ddp {
namespace {

/// Optimal string alignment distance.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  std::size_t best = std::numeric_limits<std::size_t>::max();
  std::string_view found;
  bool begun = false;  // whether `found` begins with the name
  for (const std::string& candidate : candidates) {
    const bool begins = !name.empty() && candidate.starts_with(name);
    const std::size_t distance = edit_distance(name, candidate);
    if (begins < begun || (begins == begun && distance >= best)) continue;
    begun = begins;
    best = distance;
    found = candidate;
  }
  return std::string(found);
}

std::string not_one_of(std::string_view text, const std::vector<std::string>& allowed) {
  return fmt::format("\"{}\" is not one of {}; did you mean {}?", text, fmt::join(allowed, ", "),
                     nearest(text, allowed));
}

}  // namespace ddp
