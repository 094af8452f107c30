#include "core/ops/softmax/softmax.h"

#include <gtest/gtest.h>

#include "core/ops/add/add.h"
#include "tests/support/gradcheck.h"

namespace ddp::test {
namespace {

// Columns below, at and beyond the 32 partial sums of a row.
TEST(SoftmaxGradient, IsRightInEveryElement) {
  for (const Shape& x : {Shape{5}, Shape{3, 1}, Shape{7, 32}, Shape{2, 3, 5}, Shape{3, 67}})
    expect_op_is_right([](Graph&, std::span<const Value> inputs) { return softmax(inputs[0]); },
                       {x}, static_cast<int>(x[-1]) + 4, {.low = -4, .high = 4});
}

TEST(SoftmaxGradient, PassesThroughAChainThatIsOverwritten) {
  expect_op_is_right(
      [](Graph&, std::span<const Value> x) { return softmax(softmax(add(x[0], x[1]))); },
      {{3, 37}, {3, 37}}, 64, {.low = -4, .high = 4});
}

}  // namespace
}  // namespace ddp::test
