// "Did you mean": the known name that is closest to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddp {

/// The candidate with the smallest edit distance (insert, delete, replace, swap of neighbours) to
/// `name`, among those that begin with it if there are any; the first of equals; empty when there
/// are no candidates.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

/// "\"adam\" is not one of sgd, adamw; did you mean adamw?"
std::string not_one_of(std::string_view text, const std::vector<std::string>& allowed);

}  // namespace ddp
