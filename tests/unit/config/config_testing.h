// Helpers of the configuration tests: configurations from text, and the sentence an error carries.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/config/flags.h"
#include "core/config/text_file.h"

namespace ddp {

/// The configuration of `ddptrain train ARGUMENTS…`, with no default file unless one is named.
inline Configuration from_flags(std::vector<std::string> arguments,
                                const std::string& default_file = "") {
  CLI::App app;
  CLI::App* train = app.add_subcommand("train", "train a model");
  app.add_subcommand("plan", "print the plan");
  add_config_flags(*train);
  arguments.insert(arguments.begin(), "train");
  parse_command_line(app, arguments);
  return read_configuration(*train, default_file);
}

/// The sentence of the ConfigError that `action` throws; a failure and "" if it throws none.
template <class Action>
std::string config_error(Action action) {
  try {
    action();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  ADD_FAILURE() << "no ConfigError was thrown";
  return {};
}

inline std::string flags_error(const std::vector<std::string>& arguments) {
  return config_error([&] { from_flags(arguments); });
}

inline std::string file_error(const std::string& text) {
  return config_error([&] { parse_config(text, "run.pbtxt"); });
}

/// A legal value of a field that is not its default, as typed after its flag.
inline std::string other_value(const ConfigField& field) {
  const Flag& about = flag_of(field);
  if (about.has_values()) {
    for (const std::string& value : allowed_values(field))
      if (value != field.default_value_string()) return value;
  }
  switch (field.cpp_type()) {
    case ConfigField::CPPTYPE_BOOL: return field.default_value_bool() ? "false" : "true";
    case ConfigField::CPPTYPE_DOUBLE: return "0.375";
    case ConfigField::CPPTYPE_STRING: break;
    default: return "17";
  }
  if (about.duration()) return "90s";
  if (about.intervals()) return "3ep,0.5";
  return about.interval() ? "3ep" : "other \"text\"\n\\ \xc3\xa9";
}

/// A flag with its value, as one argument.
inline std::string flag_argument(const ConfigField& field, const std::string& value) {
  return flag_name(field) + "=" + value;
}

/// Equal in the value in effect of every field, and in which fields without default are set.
inline void expect_same_values(const TrainConfig& a, const TrainConfig& b) {
  for (const ConfigField* field : config_fields())
    EXPECT_EQ(value_text(a, *field), value_text(b, *field)) << field->name();
}

}  // namespace ddp
