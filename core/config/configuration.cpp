#include "core/config/configuration.h"

#include <fmt/format.h>

namespace ddp {

std::string origin_of(const Configuration& configuration, const ConfigField& field) {
  const auto origin = configuration.origins.find(field.number());
  return origin == configuration.origins.end() ? std::string(kFromDefault) : origin->second;
}

void lay_over(Configuration& base, const Configuration& later) {
  for (const ConfigField* field : config_fields()) {
    const std::string& excluded = flag_of(*field).excludes();
    if (!is_set(later.values, *field) || excluded.empty()) continue;
    const ConfigField& other = *TrainConfig::descriptor()->FindFieldByName(excluded);
    clear_field(base.values, other);
    base.origins.erase(other.number());
  }
  base.values.MergeFrom(later.values);
  for (const auto& [number, origin] : later.origins) base.origins[number] = origin;
  base.notes.insert(base.notes.end(), later.notes.begin(), later.notes.end());
}

std::string describe_value(const Configuration& configuration, int field_number) {
  const ConfigField& field = config_field(field_number);
  const std::string origin = origin_of(configuration, field);
  const std::string value = value_text(configuration.values, field);
  if (origin == kFromFlag) return fmt::format("{} {}", flag_name(field), value);
  return fmt::format("{} {} ({})", field.name(), value, origin);
}

std::string print_config(const Configuration& configuration, PrintStyle style) {
  std::string text, group;
  const auto add_line = [&](const std::string& line, std::string_view comment) {
    text += fmt::format("{:<32}  # {}\n", line, comment);
  };
  for (const ConfigField* field : config_fields()) {
    const std::string value = value_text(configuration.values, *field);
    const std::string origin = origin_of(configuration, *field);
    if (style == PrintStyle::kDiff) {
      if (origin != kDerived && value != value_text(TrainConfig(), *field))
        add_line(fmt::format("{}: {}", field->name(), value), origin);
      continue;
    }
    if (group != flag_of(*field).group()) {
      text += fmt::format("{}# {}\n", group.empty() ? "" : "\n", flag_of(*field).group());
      group = flag_of(*field).group();
    }
    if (value.empty())
      add_line(fmt::format("# {}:", field->name()), "unset: " + flag_of(*field).unset());
    else
      add_line(fmt::format("{}{}: {}", origin == kDerived ? "# " : "", field->name(), value),
               origin);
  }
  return text;
}

}  // namespace ddp
