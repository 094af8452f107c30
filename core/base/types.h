// Strong types for numbers that must not be mixed up.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace ddp {

/// An index that converts to nothing by accident; `Tag` tells kinds apart.
template <class Tag>
struct Id {
  std::uint32_t value = 0xffffffffU;
  constexpr Id() = default;
  constexpr explicit Id(std::size_t v) : value(static_cast<std::uint32_t>(v)) {}
  constexpr std::size_t index() const { return value; }
  constexpr bool valid() const { return value != 0xffffffffU; }
  constexpr auto operator<=>(const Id&) const = default;
};

using ValueId = Id<struct ValueTag>;
using OpId = Id<struct OpTag>;
using ParamId = Id<struct ParamTag>;
using BucketId = Id<struct BucketTag>;

}  // namespace ddp
