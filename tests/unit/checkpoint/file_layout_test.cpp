#include "core/checkpoint/file_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace ddp {
namespace {

template <class T>
std::vector<T> counted(std::int64_t elements) {
  std::vector<T> values(static_cast<std::size_t>(elements));
  std::iota(values.begin(), values.end(), T{1});
  return values;
}

template <class T>
std::vector<T> to_file(const FileLayout& layout, const std::vector<T>& memory) {
  std::vector<T> file(memory.size());
  permute_to_file(layout, sizeof(T), std::as_bytes(std::span(memory)),
                  std::as_writable_bytes(std::span(file)));
  return file;
}

template <class T>
std::vector<T> from_file(const FileLayout& layout, const std::vector<T>& file) {
  std::vector<T> memory(file.size());
  permute_from_file(layout, sizeof(T), std::as_bytes(std::span(file)),
                    std::as_writable_bytes(std::span(memory)));
  return memory;
}

TEST(FileLayout, FiltersAreKrscInMemoryAndKcrsInFiles) {
  constexpr std::int64_t kK = 3, kR = 2, kS = 5, kC = 4;
  const FileLayout layout{{kK, kR, kS, kC}, {0, 3, 1, 2}, {kK, kC, kR, kS}};
  const std::vector<float> memory = counted<float>(kK * kR * kS * kC);
  const std::vector<float> file = to_file(layout, memory);
  for (std::int64_t k = 0; k < kK; ++k)
    for (std::int64_t r = 0; r < kR; ++r)
      for (std::int64_t s = 0; s < kS; ++s)
        for (std::int64_t c = 0; c < kC; ++c)
          EXPECT_EQ(file[static_cast<std::size_t>(((k * kC + c) * kR + r) * kS + s)],
                    memory[static_cast<std::size_t>(((k * kR + r) * kS + s) * kC + c)]);
}

TEST(FileLayout, TransposesAMatrix) {
  const FileLayout layout{{2, 3}, {1, 0}, {3, 2}};
  EXPECT_EQ(to_file(layout, std::vector<double>{1, 2, 3, 4, 5, 6}),
            (std::vector<double>{1, 4, 2, 5, 3, 6}));
}

TEST(FileLayout, BothDirectionsAreInverseForEveryOrder) {
  const Shape views[] = {{7}, {2, 3}, {4, 1, 3}, {2, 3, 1, 5}, {2, 1, 3, 2, 4}};
  for (const Shape& view : views) {
    std::vector<int> order(static_cast<std::size_t>(view.rank()));
    std::iota(order.begin(), order.end(), 0);
    do {
      const FileLayout layout{view, order, view};
      const auto floats = counted<float>(view.elements());
      EXPECT_EQ(from_file(layout, to_file(layout, floats)), floats);
      EXPECT_EQ(to_file(layout, from_file(layout, floats)), floats);
      const auto doubles = counted<double>(view.elements());
      EXPECT_EQ(from_file(layout, to_file(layout, doubles)), doubles);
    } while (std::ranges::next_permutation(order).found);
  }
}

TEST(FileLayout, WithoutOrderItIsACopy) {
  const auto values = counted<float>(6);
  EXPECT_EQ(to_file(FileLayout{{2, 3}, {}, {2, 3}}, values), values);
}

TEST(FileLayout, EmptyTensorsMoveNothing) {
  EXPECT_TRUE(to_file(FileLayout{{0, 3}, {1, 0}, {3, 0}}, std::vector<float>{}).empty());
  EXPECT_TRUE(to_file(FileLayout{{3, 0}, {1, 0}, {0, 3}}, std::vector<float>{}).empty());
}

TEST(FileLayout, RefusesALayoutThatIsNoPermutation) {
  const auto values = counted<float>(6);
  EXPECT_THROW(to_file(FileLayout{{2, 3}, {0, 0}, {2, 3}}, values), InternalError);
  EXPECT_THROW(to_file(FileLayout{{2, 3}, {0, 2}, {2, 3}}, values), InternalError);
  EXPECT_THROW(to_file(FileLayout{{2, 3}, {1}, {2, 3}}, values), InternalError);
  EXPECT_THROW(to_file(FileLayout{{2, 2}, {1, 0}, {2, 2}}, values), InternalError);
}

}  // namespace
}  // namespace ddp
