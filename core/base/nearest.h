// "Did you mean": the known name that is closest to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddp {

/// The candidate with the smallest edit distance (insert, delete, replace, swap of neighbours) to
/// `name`; the first of equals; empty when there are no candidates.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace ddp
