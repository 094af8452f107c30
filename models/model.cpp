#include "models/model.h"

#include <map>

#include <fmt/ranges.h>

#include "core/base/nearest.h"

namespace ddp::models {
namespace {

std::map<std::string_view, const Model*>& registry() {
  static std::map<std::string_view, const Model*> map;
  return map;
}

}  // namespace

ModelRegistrar::ModelRegistrar(const Model& model) {
  const bool added = registry().emplace(model.name, &model).second;
  DDP_CHECK(added, "two models are registered as '{}'", model.name);
}

std::vector<const Model*> all_models() {
  std::vector<const Model*> models;
  for (const auto& item : registry()) models.push_back(item.second);
  return models;
}

const Model& find_model(std::string_view name) {
  if (const auto found = registry().find(name); found != registry().end()) return *found->second;
  std::vector<std::string> names;
  for (const auto& item : registry()) names.emplace_back(item.first);
  throw ConfigError("no model is called '{}'; did you mean '{}'? Models: {}, or a file *.pbtxt",
                    name, nearest(name, names), fmt::join(names, ", "));
}

}  // namespace ddp::models
