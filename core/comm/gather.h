// Gathering numbers and plain structs where World moves bytes.
#pragma once

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "core/comm/world.h"

namespace ddp {

/// Collective. The elements of all ranks, in the order of ranks; ranks may have different numbers
/// of them.
template <class T>
std::vector<T> gather_elements(World& world, const std::vector<T>& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all;
  for (const std::string& bytes :
       world.gather({reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(T)})) {
    const std::size_t before = all.size();
    all.resize(before + bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(all.data() + before, bytes.data(), bytes.size());
  }
  return all;
}

}  // namespace ddp
