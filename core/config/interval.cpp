#include "core/config/interval.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/base/error.h"

namespace ddp {
namespace {

struct Quantity {
  double amount = 0;
  std::string_view unit;
};

/// A number without sign or exponent, and what follows it.
std::optional<Quantity> split_unit(std::string_view text) {
  double amount = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), amount, std::chars_format::fixed);
  if (error != std::errc() || !(amount >= 0) || std::signbit(amount) || amount > 1e15)
    return std::nullopt;
  return Quantity{amount, text.substr(static_cast<std::size_t>(end - text.data()))};
}

std::optional<double> seconds_in(std::string_view unit) {
  if (unit == "s") return 1;
  if (unit == "m") return 60;
  if (unit == "h") return 3600;
  return std::nullopt;
}

}  // namespace

IntervalText parse_interval(std::string_view text, std::string_view where) {
  if (text == "off") return {};
  const std::optional<Quantity> quantity = split_unit(text);
  if (quantity) {
    const auto [amount, unit] = *quantity;
    if (unit == "ep") return {amount, IntervalUnit::kEpochs};
    if (const auto seconds = seconds_in(unit)) return {amount * *seconds, IntervalUnit::kSeconds};
    if (unit.empty() && text.find('.') == text.npos) return {amount, IntervalUnit::kSteps};
    if (unit.empty() && amount <= 1) return {amount, IntervalUnit::kRuns};
    if (unit.empty())
      throw ConfigError(
          "{}: {} is a fraction of the run, since it has a dot, and cannot be above 1; {:.0f} "
          "means "
          "that many steps, {}ep that many epochs",
          where, text, amount, amount);
  }
  throw ConfigError(
      "{}: \"{}\" is not an interval; give steps (500), epochs (1ep), a time (90s, 15m, 2h), a "
      "fraction of the run (0.1), or off",
      where, text);
}

double parse_duration(std::string_view text, std::string_view where) {
  const std::optional<Quantity> quantity = split_unit(text);
  const std::optional<double> seconds = quantity ? seconds_in(quantity->unit) : std::nullopt;
  if (!seconds || quantity->amount == 0)
    throw ConfigError(
        "{}: \"{}\" is not a time above 0; give seconds (90s), minutes (15m) or hours (2h)", where,
        text);
  return quantity->amount * *seconds;
}

Interval over_run(const IntervalText& interval, std::int64_t steps_per_epoch,
                  std::int64_t run_steps) {
  if (interval.amount == 0) return {};
  if (interval.unit == IntervalUnit::kSeconds) return {.seconds = interval.amount};
  double steps = interval.amount;
  if (interval.unit == IntervalUnit::kEpochs) steps *= static_cast<double>(steps_per_epoch);
  if (interval.unit == IntervalUnit::kRuns) steps *= static_cast<double>(run_steps);
  // 1e18 fits an int64 and is beyond every run.
  return {.steps = std::max<std::int64_t>(1, std::llround(std::min(steps, 1e18)))};
}

}  // namespace ddp
