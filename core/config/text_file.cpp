#include "core/config/text_file.h"

#include <fmt/format.h>

#include "core/config/text_message.h"

namespace ddp {

Configuration parse_config(const std::string& text, const std::string& name) {
  Configuration configuration;
  google::protobuf::TextFormat::ParseInfoTree positions;
  read_text_message(text, name, configuration.values, positions);
  for (const ConfigField* field : config_fields()) {
    if (!is_set(configuration.values, *field)) continue;
    const TextPosition at = position_of(text, positions.GetLocationRange(field, -1).start);
    check_value(configuration.values, *field,
                fmt::format("{}:{}: {}", name, at.line_and_column(), field->name()));
    configuration.origins[field->number()] = fmt::format("{}:{}", name, at.line());
  }
  return configuration;
}

Configuration read_config_file(const std::string& path) {
  return parse_config(read_text_file(path, "configuration file"), path);
}

}  // namespace ddp
