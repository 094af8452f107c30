#include "core/ops/layernorm/layernorm.h"

#include <gtest/gtest.h>

#include "core/ops/add/add.h"
#include "tests/support/gradcheck.h"

namespace ddp::test {
namespace {

// Columns below, at and beyond the 32 partial sums of a row.
TEST(LayerNormGradient, IsRightInEveryElement) {
  for (const Shape& x : {Shape{7}, Shape{3, 1}, Shape{5, 32}, Shape{2, 3, 5}, Shape{4, 67}}) {
    SCOPED_TRACE(x.to_string());
    // A row of the sums is divided by a deviation that may be far below 1.
    expect_op_is_right(
        [](Graph&, std::span<const Value> inputs) { return layernorm(inputs[0], {.name = "ln"}); },
        {x}, 64 * static_cast<int>(x[-1]));
  }
}

TEST(LayerNormGradient, PassesAResidualBranch) {
  expect_op_is_right(
      [](Graph&, std::span<const Value> inputs) {
        const Value x = add(inputs[0], inputs[1]);
        return add(x, layernorm(layernorm(x, {.name = "first"}), {.name = "second"}));
      },
      {{5, 9}, {5, 9}}, 64 * 9);
}

}  // namespace
}  // namespace ddp::test
