// Reflection over TrainConfig: its fields with what the command line needs to know of them. Flags,
// files, printing and comparison go through these functions, so a new field of the message is a
// flag, a line of a file and a line of the help with no further code.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/config/interval.h"
#include "core/config/train.pb.h"

namespace ddp {

using ConfigField = google::protobuf::FieldDescriptor;

/// All fields, in the order of the message.
std::vector<const ConfigField*> config_fields();
/// The field with this number, one of the message's TrainConfig::k…FieldNumber.
const ConfigField& config_field(int number);
/// Range, allowed values, help text and group of a field.
const Flag& flag_of(const ConfigField& field);
/// The forms that intervals of this field may have.
IntervalForms interval_forms(const ConfigField& field);
/// "--micro-batch" for micro_batch.
std::string flag_name(const ConfigField& field);
/// "sgd", "adamw" for a text field that takes only these; empty if it takes any text.
std::vector<std::string> allowed_values(const ConfigField& field);

bool is_set(const TrainConfig& config, const ConfigField& field);
void clear_field(TrainConfig& config, const ConfigField& field);
/// The value in effect, set or default, as the text format writes it (`32`, `"convnet"`); empty if
/// the field is not set and has no default.
std::string value_text(const TrainConfig& config, const ConfigField& field);

/// Sets a field from what was typed after its flag. ConfigError, opening with `where` ("--lr"), if
/// that is not a value of the field's type, or check_value() refuses it.
void set_from_text(TrainConfig& config, const ConfigField& field, std::string_view text,
                   std::string_view where);
/// ConfigError, opening with `where`, if the value is out of range, not among the allowed ones, or
/// no interval or duration where the field holds one.
void check_value(const TrainConfig& config, const ConfigField& field, std::string_view where);

}  // namespace ddp
