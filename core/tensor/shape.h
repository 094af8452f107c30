// Shape of a tensor: up to five extents, outermost first, dense row-major. Images are [N, H, W, C],
// filters [K, R, S, C], matrices [rows, columns]. A value type without heap memory, so that views
// can be made inside a step.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "core/base/error.h"

namespace ddp {

class Shape {
 public:
  static constexpr int kMaxRank = 5;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents)
      : Shape(std::span(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const std::int64_t> extents) : rank_(static_cast<int>(extents.size())) {
    DDP_CHECK(extents.size() <= kMaxRank, "a shape has {} extents, at most {} are supported",
              extents.size(), kMaxRank);
    for (int i = 0; i < rank_; ++i)
      extents_[static_cast<std::size_t>(i)] = extents[static_cast<std::size_t>(i)];
  }

  int rank() const { return rank_; }
  /// Extent `i`; negative counts from the back (`shape[-1]` is the innermost).
  std::int64_t operator[](int i) const {
    return extents_[static_cast<std::size_t>(i < 0 ? i + rank_ : i)];
  }
  std::int64_t elements() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= (*this)[i];
    return n;
  }
  std::span<const std::int64_t> extents() const {
    return {extents_.data(), static_cast<std::size_t>(rank_)};
  }
  bool operator==(const Shape&) const = default;

  /// "64x28x28x32"; "scalar" for rank 0.
  std::string to_string() const {
    std::string text;
    for (int i = 0; i < rank_; ++i) text += fmt::format("{}{}", i ? "x" : "", (*this)[i]);
    return rank_ ? text : "scalar";
  }

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

}  // namespace ddp
