#include "core/config/fields.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>

#include "core/base/error.h"
#include "core/base/nearest.h"
#include "core/base/text.h"

namespace ddp {
namespace {

template <class Number>
Number parse_number(std::string_view text, std::string_view kind, std::string_view where) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range)
    throw ConfigError("{}: {} is out of the range of numbers this flag can hold", where, text);
  if (error != std::errc() || end != text.data() + text.size())
    throw ConfigError("{}: \"{}\" is not a {}", where, text, kind);
  return number;
}

std::optional<double> number_of(const TrainConfig& config, const ConfigField& field) {
  const google::protobuf::Reflection& reflection = *TrainConfig::GetReflection();
  switch (field.cpp_type()) {
    case ConfigField::CPPTYPE_INT32: return reflection.GetInt32(config, &field);
    case ConfigField::CPPTYPE_INT64:
      return static_cast<double>(reflection.GetInt64(config, &field));
    case ConfigField::CPPTYPE_DOUBLE: return reflection.GetDouble(config, &field);
    default: return std::nullopt;
  }
}

void check_number(double number, const Flag& about, std::string_view where) {
  if (!std::isfinite(number)) throw ConfigError("{}: {} is not a finite number", where, number);
  if (about.has_min() && number < about.min())
    throw ConfigError("{}: {} is below {}", where, number, about.min());
  if (about.has_above() && number <= about.above())
    throw ConfigError("{}: {} is not above {}", where, number, about.above());
  if (about.has_max() && number > about.max())
    throw ConfigError("{}: {} is above {}", where, number, about.max());
}

void check_text(const std::string& text, const ConfigField& field, std::string_view where) {
  if (text.empty()) throw ConfigError("{}: the value is empty", where);
  const std::vector<std::string> allowed = allowed_values(field);
  if (!allowed.empty() && std::ranges::find(allowed, text) == allowed.end())
    throw ConfigError("{}: {}", where, not_one_of(text, allowed));
  if (flag_of(field).interval()) parse_interval(text, where, interval_forms(field));
  if (flag_of(field).intervals()) parse_intervals(text, where, interval_forms(field));
  if (flag_of(field).duration()) parse_duration(text, where);
}

}  // namespace

std::vector<const ConfigField*> config_fields() {
  const google::protobuf::Descriptor& message = *TrainConfig::descriptor();
  std::vector<const ConfigField*> fields;
  for (int i = 0; i < message.field_count(); ++i) fields.push_back(message.field(i));
  return fields;
}

const ConfigField& config_field(int number) {
  const ConfigField* field = TrainConfig::descriptor()->FindFieldByNumber(number);
  DDP_CHECK(field != nullptr, "the configuration has no field number {}", number);
  return *field;
}

const Flag& flag_of(const ConfigField& field) { return field.options().GetExtension(flag); }

IntervalForms interval_forms(const ConfigField& field) {
  const std::vector<std::string> without = split(flag_of(field).without(), '|');
  return {.time = std::ranges::count(without, "time") == 0,
          .never = std::ranges::count(without, "off") == 0};
}

std::string flag_name(const ConfigField& field) {
  std::string name = "--" + field.name();
  std::ranges::replace(name, '_', '-');
  return name;
}

std::vector<std::string> allowed_values(const ConfigField& field) {
  const std::string& values = flag_of(field).values();
  return values.empty() ? std::vector<std::string>() : split(values, '|');
}

bool is_set(const TrainConfig& config, const ConfigField& field) {
  return TrainConfig::GetReflection()->HasField(config, &field);
}

void clear_field(TrainConfig& config, const ConfigField& field) {
  TrainConfig::GetReflection()->ClearField(&config, &field);
}

std::string value_text(const TrainConfig& config, const ConfigField& field) {
  std::string text;
  if (is_set(config, field) || field.has_default_value())
    google::protobuf::TextFormat::PrintFieldValueToString(config, &field, -1, &text);
  return text;
}

void set_from_text(TrainConfig& config, const ConfigField& field, std::string_view text,
                   std::string_view where) {
  const google::protobuf::Reflection& reflection = *TrainConfig::GetReflection();
  switch (field.cpp_type()) {
    case ConfigField::CPPTYPE_INT32:
      reflection.SetInt32(&config, &field, parse_number<std::int32_t>(text, "whole number", where));
      break;
    case ConfigField::CPPTYPE_INT64:
      reflection.SetInt64(&config, &field, parse_number<std::int64_t>(text, "whole number", where));
      break;
    case ConfigField::CPPTYPE_DOUBLE:
      reflection.SetDouble(&config, &field, parse_number<double>(text, "number", where));
      break;
    case ConfigField::CPPTYPE_BOOL:
      if (text != "true" && text != "false")
        throw ConfigError("{}: \"{}\" is neither true nor false", where, text);
      reflection.SetBool(&config, &field, text == "true");
      break;
    default:
      DDP_CHECK(field.cpp_type() == ConfigField::CPPTYPE_STRING,
                "no flag can set field {} of type {}", field.name(), field.cpp_type_name());
      reflection.SetString(&config, &field, std::string(text));
  }
  check_value(config, field, where);
}

void check_value(const TrainConfig& config, const ConfigField& field, std::string_view where) {
  if (const std::optional<double> number = number_of(config, field))
    check_number(*number, flag_of(field), where);
  else if (field.cpp_type() == ConfigField::CPPTYPE_STRING)
    check_text(TrainConfig::GetReflection()->GetString(config, &field), field, where);
}

}  // namespace ddp
