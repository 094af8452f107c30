#include "core/config/interval.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/base/error.h"
#include "core/base/text.h"

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

IntervalText parse_any_form(std::string_view text, std::string_view where,
                            const IntervalForms& forms) {
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
  throw ConfigError("{}: \"{}\" is not an interval; give {}", where, text, describe_forms(forms));
}

}  // namespace

std::string describe_forms(const IntervalForms& forms) {
  std::vector<std::string_view> kinds{"steps (500)", "epochs (1ep)"};
  if (forms.time) kinds.emplace_back("a time (90s, 15m, 2h)");
  kinds.emplace_back("a fraction of the run (0.1)");
  if (forms.never) kinds.emplace_back("off");
  const std::string_view last = kinds.back();
  kinds.pop_back();
  return fmt::format("{}, or {}", fmt::join(kinds, ", "), last);
}

IntervalText parse_interval(std::string_view text, std::string_view where,
                            const IntervalForms& forms) {
  const IntervalText interval = parse_any_form(text, where, forms);
  if (interval.unit == IntervalUnit::kSeconds && !forms.time)
    throw ConfigError("{}: {} is a time, which this cannot be; give {}", where, text,
                      describe_forms(forms));
  if (interval.amount == 0 && !forms.never)
    throw ConfigError("{}: {} means never, which this cannot be; give {}", where, text,
                      describe_forms(forms));
  return interval;
}

std::vector<IntervalText> parse_intervals(std::string_view text, std::string_view where,
                                          const IntervalForms& forms) {
  std::vector<IntervalText> intervals;
  for (const std::string& part : split(text, ',')) {
    if (part.empty())
      throw ConfigError("{}: \"{}\" has a comma with nothing {} it", where, text,
                        text.starts_with(',') ? "before" : "behind");
    const IntervalText interval = parse_interval(part, where, forms);
    if (std::ranges::count(intervals, interval) > 0)
      throw ConfigError("{}: \"{}\" holds {} twice; give each once", where, text, part);
    intervals.push_back(interval);
  }
  return intervals;
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
