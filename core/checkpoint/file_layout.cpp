#include "core/checkpoint/file_layout.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ddp {
namespace {

enum class Direction { kToFile, kFromFile };

/// Extents of the file's axes and how far apart their neighbours lie in memory, in elements.
struct Walk {
  int rank = 0;
  std::array<std::size_t, Shape::kMaxRank> extent{}, stride{};
};

Walk make_walk(const FileLayout& layout) {
  const Shape& view = layout.view;
  std::array<std::size_t, Shape::kMaxRank> strides{};
  std::size_t stride = 1;
  for (int axis = view.rank(); axis-- > 0;) {
    strides[static_cast<std::size_t>(axis)] = stride;
    stride *= static_cast<std::size_t>(view[axis]);
  }
  Walk walk;
  std::array<bool, Shape::kMaxRank> seen{};
  for (const int axis : layout.order) {
    DDP_CHECK(axis >= 0 && axis < view.rank() && !seen[static_cast<std::size_t>(axis)],
              "axis {} is out of place in the file layout of a {} tensor", axis, view.to_string());
    seen[static_cast<std::size_t>(axis)] = true;
    const auto i = static_cast<std::size_t>(walk.rank++);
    walk.extent[i] = static_cast<std::size_t>(view[axis]);
    walk.stride[i] = strides[static_cast<std::size_t>(axis)];
  }
  DDP_CHECK(walk.rank == view.rank(), "a file layout orders {} of the {} axes of a {} tensor",
            walk.rank, view.rank(), view.to_string());
  return walk;
}

template <std::size_t kBytes>
void copy(const Walk& walk, Direction direction, const std::byte* from, std::byte* to,
          std::size_t elements) {
  const auto last = static_cast<std::size_t>(walk.rank - 1);
  std::array<std::size_t, Shape::kMaxRank> index{};
  std::size_t memory = 0;
  for (std::size_t file = 0; file < elements;) {
    for (std::size_t i = 0; i < walk.extent[last]; ++i, ++file) {
      const std::size_t there = memory + i * walk.stride[last];
      const bool to_file = direction == Direction::kToFile;
      std::memcpy(to + (to_file ? file : there) * kBytes, from + (to_file ? there : file) * kBytes,
                  kBytes);
    }
    for (std::size_t axis = last; axis-- > 0;) {
      memory += walk.stride[axis];
      if (++index[axis] < walk.extent[axis]) break;
      memory -= walk.extent[axis] * walk.stride[axis];
      index[axis] = 0;
    }
  }
}

void permute(const FileLayout& layout, std::size_t element_bytes, Direction direction,
             std::span<const std::byte> from, std::span<std::byte> to) {
  const auto elements = static_cast<std::size_t>(layout.view.elements());
  DDP_CHECK(from.size() == elements * element_bytes && to.size() == from.size(),
            "a {} tensor with elements of {} bytes is permuted from {} to {} bytes",
            layout.view.to_string(), element_bytes, from.size(), to.size());
  if (layout.order.empty()) {
    std::ranges::copy(from, to.begin());
    return;
  }
  const Walk walk = make_walk(layout);
  DDP_CHECK(element_bytes == 4 || element_bytes == 8, "elements of {} bytes cannot be permuted",
            element_bytes);
  if (element_bytes == 4)
    copy<4>(walk, direction, from.data(), to.data(), elements);
  else
    copy<8>(walk, direction, from.data(), to.data(), elements);
}

}  // namespace

void permute_to_file(const FileLayout& layout, std::size_t element_bytes,
                     std::span<const std::byte> memory, std::span<std::byte> file) {
  permute(layout, element_bytes, Direction::kToFile, memory, file);
}

void permute_from_file(const FileLayout& layout, std::size_t element_bytes,
                       std::span<const std::byte> file, std::span<std::byte> memory) {
  permute(layout, element_bytes, Direction::kFromFile, file, memory);
}

}  // namespace ddp
