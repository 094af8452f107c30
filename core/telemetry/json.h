// How telemetry writes JSON: keys in the order given, null for what is unknown, and never an
// exception for a path or host name that is not UTF-8, since these files are written when things
// already went wrong.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace ddp {

using OrderedJson = nlohmann::ordered_json;

template <class T>
OrderedJson or_null(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

/// `indent` < 0: one line.
inline std::string to_text(const OrderedJson& json, int indent) {
  return json.dump(indent, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace ddp
