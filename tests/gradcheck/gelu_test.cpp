#include "core/ops/gelu/gelu.h"

#include <gtest/gtest.h>

#include "core/ops/add/add.h"
#include "tests/support/gradcheck.h"

namespace ddp::test {
namespace {

TEST(GeluGradient, IsRightInEveryElement) {
  for (const char* approximate : {"none", "tanh"})
    for (const Shape& x : {Shape{1}, Shape{3, 5}, Shape{2, 3, 5, 7}}) {
      SCOPED_TRACE(fmt::format("{}, {}", approximate, x.to_string()));
      // The derivative is a sum of two products of about five roundings each.
      expect_op_is_right(
          [&](Graph&, std::span<const Value> inputs) {
            return gelu(add(inputs[0], inputs[1]), {.approximate = approximate});
          },
          {x, x}, 16, {.low = -3, .high = 3});
    }
}

}  // namespace
}  // namespace ddp::test
