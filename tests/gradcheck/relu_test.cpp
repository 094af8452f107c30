#include "core/ops/relu/relu.h"

#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"

namespace ddp::test {
namespace {

TEST(ReluGradient, IsRightInEveryElement) {
  for (const Shape& x : {Shape{1}, Shape{3, 5}, Shape{2, 3, 5, 7}})
    expect_op_is_right([](Graph&, std::span<const Value> inputs) { return relu(inputs[0]); }, {x},
                       1);
}

TEST(ReluGradient, PassesThroughAChain) {
  expect_op_is_right([](Graph&, std::span<const Value> inputs) { return relu(relu(inputs[0])); },
                     {{4, 9}}, 1);
}

}  // namespace
}  // namespace ddp::test
