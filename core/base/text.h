// Text forms of numbers, sizes, times and tables that several parts print. Machine-readable numbers
// are in shortest round-trip form; the other forms are for people and lose digits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ddp {

/// The shortest decimal text that reads back as the same double; "nan", "inf", "-inf". Never
/// depends on the locale.
std::string number_text(double value);
/// The same, appended to `out`: no allocation once `out` has the capacity.
void append_number(std::string& out, double value);

/// "512 B", "1.5 KiB", "3.2 GiB".
std::string human_bytes(std::uint64_t bytes);

/// "850 ms", "4.2 s", "3m07s", "2h05m", "3d04h"; "?" for a time that is negative or not finite.
std::string human_duration(double seconds);

/// "1 rank", "3 ranks".
std::string count_text(std::int64_t count, std::string_view word);

/// The parts of a text between separators: one more than there are separators.
std::vector<std::string> split(std::string_view text, char separator);

/// Rows as lines whose cells stand in columns, two spaces apart; `alignment` has 'l' or 'r' for
/// each column, missing ones are 'l'. Widths count bytes, so cells should be ASCII. No trailing
/// spaces; each line ends with a newline.
std::string align_columns(const std::vector<std::vector<std::string>>& rows,
                          std::string_view alignment = "");

}  // namespace ddp
