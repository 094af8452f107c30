// Intervals and durations as a user writes them: "500" (steps), "1ep", "15m", "0.1" (a fraction of
// the run), "off". They are checked where they are read and become steps once the run's length is
// known; resolve() does that.
#pragma once

#include <cstdint>
#include <string_view>

namespace ddp {

enum class IntervalUnit : std::uint8_t { kSteps, kEpochs, kSeconds, kRuns };

/// An interval as written. An amount of 0 means never; a fraction of the run is an amount of kRuns,
/// at most 1.
struct IntervalText {
  double amount = 0;
  IntervalUnit unit = IntervalUnit::kSteps;
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
/// run), "0" and "off" (never). ConfigError, opening with `where`, if it is none of these.
IntervalText parse_interval(std::string_view text, std::string_view where);

/// Seconds of "90s", "15m", "2h", "1.5h"; above 0. ConfigError, opening with `where`, otherwise.
double parse_duration(std::string_view text, std::string_view where);

/// The interval in a run of `run_steps` steps: rounded to whole steps, at least 1 unless it is
/// never.
Interval over_run(const IntervalText& interval, std::int64_t steps_per_epoch,
                  std::int64_t run_steps);

}  // namespace ddp
