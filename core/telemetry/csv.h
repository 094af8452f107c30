// One field of a CSV file, as RFC 4180 has it. For texts that we do not choose, such as the names
// of classes.
#pragma once

#include <string>
#include <string_view>

namespace ddp {

/// `text` itself, or in quotation marks, with its own doubled, when it holds a comma, a quotation
/// mark or the end of a line.
inline std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted(1, '"');
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

}  // namespace ddp
