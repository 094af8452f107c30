#include "core/ops/linear/linear.h"

#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"

namespace ddp::test {
namespace {

TEST(LinearGradient, IsRightInEveryElement) {
  for (const Shape& x : {Shape{1, 1}, Shape{3, 5}, Shape{7, 2}, Shape{2, 19}})
    for (const std::int64_t units : {1, 4, 13})
      for (const bool bias : {false, true})
        expect_op_is_right(
            [&](Graph&, std::span<const Value> inputs) {
              return linear(inputs[0], {.name = "fc", .units = units, .bias = bias});
            },
            {x}, 20);
}

TEST(LinearGradient, OfTiedWeightsIsTheSumOfBothUses) {
  expect_op_is_right(
      [](Graph&, std::span<const Value> inputs) {
        const Linear layer{.name = "tied", .units = 3};
        return linear(linear(inputs[0], layer), layer);
      },
      {{4, 3}}, 12);
}

}  // namespace
}  // namespace ddp::test
