#include "core/config/flags.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/base/error.h"
#include "core/base/nearest.h"
#include "core/config/text_file.h"
#include "core/config/unused.h"

namespace ddp {
namespace {

constexpr std::size_t kHelpWidth = 68;  // beside the column of flag names, 98 in all

std::string off_name(const ConfigField& field) { return "--no-" + flag_name(field).substr(2); }

bool is_bool(const ConfigField& field) { return field.cpp_type() == ConfigField::CPPTYPE_BOOL; }

std::string placeholder(const ConfigField& field) {
  const Flag& about = flag_of(field);
  if (about.has_values()) return about.values();
  if (about.interval()) return "INTERVAL";
  if (about.intervals()) return "INTERVAL,...";
  if (about.duration()) return "TIME";
  if (field.cpp_type() == ConfigField::CPPTYPE_STRING) return "TEXT";
  return field.cpp_type() == ConfigField::CPPTYPE_DOUBLE ? "X" : "N";
}

std::string range_text(const Flag& about) {
  if (about.has_min() && about.has_max()) return fmt::format("{} to {}", about.min(), about.max());
  if (about.has_min()) return fmt::format("at least {}", about.min());
  if (about.has_above() && about.has_max())
    return fmt::format("above {}, at most {}", about.above(), about.max());
  if (about.has_above()) return fmt::format("above {}", about.above());
  return "";
}

/// Breaks a text into lines at spaces.
std::string wrap(std::string text) {
  for (std::size_t start = 0; text.size() - start > kHelpWidth;) {
    const std::size_t space = text.rfind(' ', start + kHelpWidth);
    if (space == text.npos || space <= start) break;
    text[space] = '\n';
    start = space + 1;
  }
  return text;
}

std::string forms_text(const IntervalForms& forms) {
  return fmt::format("steps, 1ep, {}{}0.1 of the run{}", forms.time ? "15m, " : "",
                     forms.never ? "" : "or ", forms.never ? ", or off" : "");
}

std::string help_text(const ConfigField& field) {
  const Flag& about = flag_of(field);
  std::string facts = range_text(about);
  const auto add = [&](const std::string& fact) { facts += (facts.empty() ? "" : "; ") + fact; };
  if (about.interval()) add(forms_text(interval_forms(field)));
  if (about.intervals()) add("each: " + forms_text(interval_forms(field)));
  if (about.duration()) add("90s, 15m, 2h");
  if (field.has_default_value()) {
    std::string value = value_text(TrainConfig(), field);
    std::erase(value, '"');
    add("default " + value);
  } else {
    add("unset: " + about.unset());
  }
  if (is_bool(field)) add("or " + off_name(field));
  return wrap(fmt::format("{} ({})", about.help(), facts));
}

/// An option whose every occurrence takes one value; all of them are kept, to compare them.
CLI::Option* add_value_option(CLI::App& app, const std::string& name) {
  return app.add_option(name)->expected(1)->allow_extra_args(false)->take_all();
}

void add_flag(CLI::App& app, const ConfigField& field) {
  const std::string name = flag_name(field);
  CLI::Option* option = nullptr;
  if (is_bool(field)) {
    option = app.add_flag(name)->take_all();
    // Without a group an option is not listed; the text of the flag itself tells of it.
    app.add_flag(off_name(field))->take_all()->group("");
  } else {
    option = add_value_option(app, name)->type_name(placeholder(field));
  }
  option->description(help_text(field))->group(flag_of(field).group());
}

std::vector<std::string> results(const CLI::App& app, const std::string& name) {
  const CLI::Option* option = app.get_option_no_throw(name);
  return option == nullptr ? std::vector<std::string>() : option->results();
}

/// What was typed for a field, once for each time it was given.
std::vector<std::string> typed_values(const CLI::App& app, const ConfigField& field) {
  std::vector<std::string> values = results(app, flag_name(field));
  if (is_bool(field)) {
    for (const std::string& off : results(app, off_name(field))) {
      if (off != "true") throw ConfigError("{} takes no value", off_name(field));
      values.emplace_back("false");
    }
  }
  return values;
}

Configuration read_flags(const CLI::App& app) {
  Configuration flags;
  for (const ConfigField* field : config_fields()) {
    const std::vector<std::string> values = typed_values(app, *field);
    if (values.empty()) continue;
    const std::string name = flag_name(*field);
    const auto other = std::ranges::find_if(values, [&](auto& v) { return v != values.front(); });
    if (other != values.end())
      throw ConfigError("{} is given twice with different values, {} and {}; give it once", name,
                        values.front(), *other);
    set_from_text(flags.values, *field, values.front(), name);
    flags.origins[field->number()] = kFromFlag;
  }
  return flags;
}

/// The subcommand that was left with arguments it does not know.
const CLI::App& app_with_extras(const CLI::App& app) {
  for (const CLI::App* subcommand : app.get_subcommands())
    if (subcommand->remaining_size(true) > 0) return app_with_extras(*subcommand);
  return app;
}

/// CLI11 takes whatever follows as a value, and so would hide that one was forgotten.
void check_values_given(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options())
    for (const std::string& value : option->results())
      if (value.starts_with("--"))
        throw ConfigError("{} has no value: {} follows it", option->get_name(), value);
  for (const CLI::App* subcommand : app.get_subcommands()) check_values_given(*subcommand);
}

[[noreturn]] void fail_at_extras(const CLI::App& root) {
  const CLI::App& app = app_with_extras(root);
  const std::string typed = app.remaining().front();
  const std::string extra = typed.substr(0, typed.find('='));
  std::vector<std::string> known;
  if (extra.starts_with('-')) {
    for (const CLI::Option* option : app.get_options())
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    throw ConfigError("unknown flag {}; did you mean {}?", extra, nearest(extra, known));
  }
  for (const CLI::App* subcommand : app.get_subcommands([](const CLI::App*) { return true; }))
    known.push_back(subcommand->get_name());
  if (known.empty())
    throw ConfigError("unexpected argument {}: values stand after their --flag", typed);
  throw ConfigError("unknown command {}; did you mean {}?", typed, nearest(typed, known));
}

}  // namespace

void add_config_flags(CLI::App& app, std::span<const std::string> fields) {
  add_value_option(app, "--config")
      ->type_name("FILE")
      ->group("Configuration")
      ->description(wrap(fmt::format("file of settings in protobuf text format; may be repeated, "
                                     "later files and then flags win (unset: {} if it is there)",
                                     kDefaultConfigFile)));
  for (const ConfigField* field : config_fields())
    if (fields.empty() || std::ranges::find(fields, field->name()) != fields.end())
      add_flag(app, *field);
}

void parse_command_line(CLI::App& app, std::vector<std::string> arguments) {
  std::ranges::reverse(arguments);  // CLI11 takes them from the back
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::Success&) {
    throw;
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string sentence = error.what();  // "--lr: 1 required X missing"
    throw ConfigError("{} has no value; --help says what it takes",
                      sentence.substr(0, sentence.find(':')));
  } catch (const CLI::ParseError& error) {
    // What was not understood comes first: a required flag may be missing because it is mistyped.
    if (app_with_extras(app).remaining_size(true) > 0) {
      check_values_given(app);
      fail_at_extras(app);
    }
    throw ConfigError("{}", error.what());
  }
  check_values_given(app);
}

Configuration read_configuration(const CLI::App& app, const std::string& default_file) {
  Configuration configuration;
  std::vector<std::string> files = results(app, "--config");
  std::error_code ignored;
  if (files.empty() && !default_file.empty() && std::filesystem::exists(default_file, ignored)) {
    files.push_back(default_file);
    configuration.notes.push_back(
        fmt::format("settings come from {}, since no --config was given", default_file));
  }
  for (const std::string& file : files) lay_over(configuration, read_config_file(file));
  lay_over(configuration, read_flags(app));
  for (std::string& sentence : unused_settings(configuration))
    configuration.notes.push_back(std::move(sentence));
  return configuration;
}

}  // namespace ddp
