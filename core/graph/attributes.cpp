#include "core/graph/attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ddp {

void Attributes::set(std::string name, Attribute value) {
  for (auto& item : items_)
    if (item.first == name) {
      item.second = std::move(value);
      return;
    }
  items_.emplace_back(std::move(name), std::move(value));
}

std::string Attributes::to_string() const {
  std::string out;
  for (const auto& [name, value] : items_) {
    if (!out.empty()) out += ' ';
    out += name + '=';
    std::visit(
        [&out](const auto& v) {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, std::vector<double>>)
            out += fmt::format("[{}]", fmt::join(v, ","));
          else
            out += fmt::format("{}", v);
        },
        value);
  }
  return out;
}

}  // namespace ddp
