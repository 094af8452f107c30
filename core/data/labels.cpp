#include "core/data/labels.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "core/base/error.h"

namespace ddp {

namespace {

constexpr std::size_t kFew = 5;

std::string likely_cause(std::span<const std::uint8_t> labels, int classes) {
  const auto [smallest, largest] = std::ranges::minmax(labels);
  if (smallest == 1 && largest == classes) {
    return fmt::format(
        "the labels run from 1 to {}: they seem to be counted from 1, so take 1 from each or give "
        "--classes {}",
        classes, classes + 1);
  }
  return "check the file, or --classes";
}

}  // namespace

std::string first_few(std::span<const std::int64_t> numbers) {
  if (numbers.size() <= kFew) return fmt::format("{}", fmt::join(numbers, ", "));
  return fmt::format("{} and {} more", fmt::join(numbers.first(kFew), ", "), numbers.size() - kFew);
}

void check_labels(const std::string& file, std::span<const std::uint8_t> labels, int classes,
                  const std::function<std::string(std::int64_t record)>& byte_name,
                  std::string_view kind) {
  std::vector<std::int64_t> bad;
  for (std::size_t record = 0; record < labels.size(); ++record)
    if (labels[record] >= classes) bad.push_back(static_cast<std::int64_t>(record));
  if (bad.empty()) return;
  const std::string others = bad.size() == 1 ? ""
                                             : fmt::format("; so are those of records {}",
                                                           first_few(std::span(bad).subspan(1)));
  throw RecordError(
      file, bad[0], "{}label {} at {} is outside 0..{}, the range of the {} classes{}; {}", kind,
      labels[static_cast<std::size_t>(bad[0])], byte_name(bad[0]), classes - 1, classes, others,
      kind.empty() ? likely_cause(labels, classes) : "check the file");
}

}  // namespace ddp
