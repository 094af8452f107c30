#include "core/config/unused.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ddp {
namespace {

/// The field that a setting depends on, and the values with which it matters.
struct Requirement {
  const ConfigField* field = nullptr;
  std::vector<std::string> values;
};

Requirement requirement_of(const ConfigField& field) {
  const std::vector<std::string> sides = split(flag_of(field).used_by(), '=');
  const ConfigField* other = TrainConfig::descriptor()->FindFieldByName(sides.front());
  DDP_CHECK(sides.size() == 2 && other != nullptr, "field {} is used by '{}', which is no field",
            field.name(), flag_of(field).used_by());
  return {.field = other, .values = split(sides[1], '|')};
}

/// Whether somebody asked for this value. The record of a run holds all values; those that are the
/// default anyway were asked for by nobody.
bool was_asked_for(const Configuration& configuration, const ConfigField& field) {
  const std::string origin = origin_of(configuration, field);
  if (origin == kFromFlag) return true;
  return origin != kFromDefault && origin != kDerived &&
         value_text(configuration.values, field) != value_text(TrainConfig(), field);
}

}  // namespace

std::vector<std::string> unused_settings(const Configuration& configuration) {
  std::vector<std::string> sentences;
  for (const ConfigField* field : config_fields()) {
    if (!flag_of(*field).has_used_by() || !was_asked_for(configuration, *field)) continue;
    const Requirement needs = requirement_of(*field);
    const std::string value =
        TrainConfig::GetReflection()->GetString(configuration.values, needs.field);
    if (std::ranges::find(needs.values, value) != needs.values.end()) continue;
    sentences.push_back(fmt::format("{} does nothing beside {}: it is for {} {}",
                                    describe_value(configuration, field->number()),
                                    describe_value(configuration, needs.field->number()),
                                    flag_name(*needs.field), fmt::join(needs.values, ", ")));
  }
  return sentences;
}

}  // namespace ddp
