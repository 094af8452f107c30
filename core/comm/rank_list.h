// How ranks are named in sentences: "rank 3", "ranks 0-2, 5". Called wherever a difference between
// ranks is reported.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <fmt/core.h>

namespace ddp {

/// `ranks` ascending and not empty; runs of three or more are written as a range.
inline std::string rank_list(std::span<const int> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - i < 3) end = i + 1;
    if (i > 0) text += ", ";
    text +=
        end - i == 1 ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[end - 1]);
    i = end;
  }
  return text;
}

}  // namespace ddp
