// Intervals and durations as a user writes them: "500" (steps), "1ep", "15m", "0.1" (a fraction of
// the run), "off". They are checked where they are read and become steps once the run's length is
// known; resolve() does that.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ddp {

enum class IntervalUnit : std::uint8_t { kSteps, kEpochs, kSeconds, kRuns };

/// Forms of an interval that a flag may refuse.
struct IntervalForms {
  bool time = true;
  bool never = true;  ///< "off" and 0
  bool operator==(const IntervalForms&) const = default;
};

/// "steps (500), epochs (1ep), a time (90s, 15m, 2h), a fraction of the run (0.1), or off": as far
/// as the forms allow.
std::string describe_forms(const IntervalForms& forms);

/// An interval as written. An amount of 0 means never; a fraction of the run is an amount of kRuns,
/// at most 1.
struct IntervalText {
  double amount = 0;
  IntervalUnit unit = IntervalUnit::kSteps;
  bool operator==(const IntervalText&) const = default;
};

/// What an interval comes to in one run: every so many steps or every so many seconds; never if
/// both are 0.
struct Interval {
  std::int64_t steps = 0;
  double seconds = 0;
  bool never() const { return steps == 0 && seconds == 0; }
  bool operator==(const Interval&) const = default;
};

/// Reads "500", "1ep", "0.5ep", "90s", "15m", "2h", "0.1" (a number with a dot is a fraction of the
/// run), "0" and "off" (never). ConfigError, opening with `where`, if it is none of these, or of a
/// form that is refused.
IntervalText parse_interval(std::string_view text, std::string_view where,
                            const IntervalForms& forms = {});

/// Intervals between commas, such as milestones; no two of them alike.
std::vector<IntervalText> parse_intervals(std::string_view text, std::string_view where,
                                          const IntervalForms& forms = {});

/// Seconds of "90s", "15m", "2h", "1.5h"; above 0. ConfigError, opening with `where`, otherwise.
double parse_duration(std::string_view text, std::string_view where);

/// The interval in a run of `run_steps` steps: rounded to whole steps, at least 1 unless it is
/// never.
Interval over_run(const IntervalText& interval, std::int64_t steps_per_epoch,
                  std::int64_t run_steps);

}  // namespace ddp
