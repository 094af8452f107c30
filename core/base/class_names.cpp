#include "core/base/class_names.h"

#include <cstddef>
#include <iterator>

namespace ddp {

std::string class_name(const std::vector<std::string>& names, int label) {
  const bool known = label >= 0 && label < std::ssize(names);
  return known ? names[static_cast<std::size_t>(label)] : "";
}

std::string class_label(const std::vector<std::string>& names, int label) {
  const std::string name = class_name(names, label);
  return name.empty() ? std::to_string(label) : name;
}

}  // namespace ddp
