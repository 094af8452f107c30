// Attributes of an op: a small ordered map of names to numbers, text or lists. Everything a kernel
// has to know beside its tensors is in here, so that an op can be printed, compared and hashed
// without knowing its kind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/error.h"

namespace ddp {

using Attribute = std::variant<std::int64_t, double, std::string, std::vector<double>>;

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, Attribute>> items) : items_(items) {}

  /// The attribute `name`, which must exist and be of type T (int64_t, double, std::string,
  /// std::vector<double>).
  template <class T>
  const T& get(std::string_view name) const {
    for (const auto& [key, value] : items_)
      if (key == name) {
        DDP_CHECK(std::holds_alternative<T>(value), "attribute '{}' has another type", name);
        return std::get<T>(value);
      }
    throw InternalError(fmt::format("an op lacks its attribute '{}'", name),
                        std::source_location::current());
  }
  std::int64_t integer(std::string_view name) const { return get<std::int64_t>(name); }
  double real(std::string_view name) const { return get<double>(name); }
  const std::string& text(std::string_view name) const { return get<std::string>(name); }
  const std::vector<double>& list(std::string_view name) const {
    return get<std::vector<double>>(name);
  }

  bool has(std::string_view name) const {
    for (const auto& item : items_)
      if (item.first == name) return true;
    return false;
  }
  /// Adds or replaces.
  void set(std::string name, Attribute value);
  const std::vector<std::pair<std::string, Attribute>>& items() const { return items_; }

  /// "stride=2 pad=1"; numbers in shortest round-trip form. The canonical text that hashes use.
  std::string to_string() const;

 private:
  std::vector<std::pair<std::string, Attribute>> items_;
};

}  // namespace ddp
