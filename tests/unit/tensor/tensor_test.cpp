#include "core/tensor/tensor.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace ddp {
namespace {

TEST(Shape, CountsNegativeAxesFromTheBack) {
  const Shape shape{2, 3, 5};
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(shape[-1], 5);
  EXPECT_EQ(shape[-3], 2);
  EXPECT_EQ(shape.elements(), 30);
}

TEST(Shape, OfRankZeroHasOneElement) {
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ(Shape{}.to_string(), "scalar");
}

TEST(Shape, PrintsItsExtents) { EXPECT_EQ((Shape{64, 28, 28, 1}.to_string()), "64x28x28x1"); }

TEST(Shape, IsEqualOnlyWithTheSameExtents) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2}), (Shape{2, 1}));
}

TEST(Shape, RefusesMoreExtentsThanItHolds) {
  EXPECT_NO_THROW((Shape{1, 2, 3, 4, 5}));
  EXPECT_THROW((Shape{1, 2, 3, 4, 5, 6}), InternalError);
}

TEST(TensorView, RefusesToBeReadAsAnotherType) {
  float data[6] = {};
  const TensorView view{data, {Shape{2, 3}, DType::kF32}};
  EXPECT_EQ(view.as<float>(), data);
  EXPECT_EQ(view.span<float>().size(), 6U);
  EXPECT_EQ(view.bytes(), sizeof(data));
  EXPECT_THROW(view.as<double>(), InternalError);
}

TEST(Buffer, OfHostMemoryIsZeroedAndAligned) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, std::size_t{100'001}}) {
    const Buffer buffer = allocate_host(bytes);
    EXPECT_EQ(buffer.size(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 4096, 0U);
    EXPECT_TRUE(std::all_of(buffer.data(), buffer.data() + bytes,
                            [](std::byte b) { return b == std::byte{0}; }));
  }
}

TEST(Buffer, FreesOnceWhenItsLastOwnerGoes) {
  int freed = 0;
  char memory[8];
  {
    Buffer first(memory, sizeof(memory), [&freed](void*) { ++freed; });
    const Buffer second = std::move(first);
    EXPECT_EQ(freed, 0);
    EXPECT_EQ(second.data(), reinterpret_cast<std::byte*>(memory));
  }
  EXPECT_EQ(freed, 1);
}

}  // namespace
}  // namespace ddp
