// A configuration with the origin of each value. Sources are laid over each other in order of
// precedence (defaults, files, flags), and a value always knows which one it came from; errors and
// --print-config say it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/fields.h"

namespace ddp {

inline constexpr std::string_view kFromDefault = "default";
inline constexpr std::string_view kFromFlag = "flag";
inline constexpr std::string_view kDerived = "derived";

struct Configuration {
  TrainConfig values;
  std::map<int, std::string> origins;  ///< by field number, of each set field: "FILE:LINE",
                                       ///< kFromFlag, or kDerived
  std::vector<std::string> notes;      ///< sentences the user should see
};

/// Where the value in effect came from; kFromDefault for a field that is not set.
std::string origin_of(const Configuration& configuration, const ConfigField& field);

/// Fills in a field that is not set; `set` is the message's setter, or a function of both.
template <class Setter, class Value>
void derive(Configuration& configuration, int field_number, Setter set, const Value& value) {
  if (is_set(configuration.values, config_field(field_number))) return;
  std::invoke(set, configuration.values, value);
  configuration.origins[field_number] = kDerived;
}

/// Lays `later` over `base`: its set fields win, and a field that excludes another (steps, epochs)
/// removes that one from `base`.
void lay_over(Configuration& base, const Configuration& later);

/// A field as a sentence names it: "--lr 0.1", "lr 0.1 (run.pbtxt:3)", "lr 0.1 (default)".
std::string describe_value(const Configuration& configuration, int field_number);

enum class PrintStyle : std::uint8_t {
  kFull,  ///< every field
  kDiff,  ///< the fields that were given a value other than their default
};

/// The configuration in text format, each line with its origin in a comment. Derived and unset
/// fields are comments: reading the text back gives what was asked for, at any number of ranks.
std::string print_config(const Configuration& configuration, PrintStyle style);

}  // namespace ddp
