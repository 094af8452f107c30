// The check that every label of a file lies in the range of the classes. All labels outside of it
// are one error, which names the first of them and the likely cause. Called by every reader.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace ddp {

/// RecordError unless all `labels` of `file`, by record, are in [0, classes). `byte_name` says
/// where in the file the label of a record is: "byte 17". `kind` stands before the word label:
/// "coarse ".
void check_labels(const std::string& file, std::span<const std::uint8_t> labels, int classes,
                  const std::function<std::string(std::int64_t record)>& byte_name,
                  std::string_view kind = "");

/// Up to five of the numbers, then how many more there are: "3, 7, 11 and 2 more".
std::string first_few(std::span<const std::int64_t> numbers);

}  // namespace ddp
