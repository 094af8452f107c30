// Ops that treat each element alone: add, reshape, dropout.
#include <gtest/gtest.h>

#include "core/ops/add/add.h"
#include "core/ops/dropout/dropout.h"
#include "core/ops/reshape/reshape.h"
#include "tests/support/gradcheck.h"

namespace ddp::test {
namespace {

TEST(AddGradient, MatchesCentralDifferences) {
  expect_op_is_right([](Graph&, std::span<const Value> x) { return add(x[0], x[1]); },
                     {{3, 5}, {3, 5}}, 1);
}

TEST(AddGradient, CountsEachUseOfAValue) {
  const auto four_times = [](Graph&, std::span<const Value> x) {
    const Value twice = add(x[0], x[0]);
    return add(twice, twice);
  };
  expect_op_is_right(four_times, {{7}}, 4);
}

TEST(ReshapeGradient, MatchesCentralDifferences) {
  const auto through_a_matrix = [](Graph&, std::span<const Value> x) {
    return add(reshape(flatten(x[0]), {5, 6}), x[1]);
  };
  expect_op_is_right(through_a_matrix, {{2, 3, 5, 1}, {5, 6}}, 1);
}

TEST(DropoutGradient, MatchesCentralDifferences) {
  for (const double probability : {0.25, 0.9})
    for (const Shape& shape : {Shape{3, 5, 3, 9}, Shape{2, 1}, Shape{5}}) {
      SCOPED_TRACE(fmt::format("p = {}, {}", probability, shape.to_string()));
      const auto drop_sum = [&](Graph& graph, std::span<const Value> x) {
        const Value ids = graph.input("sample_ids", {{shape[0]}, DType::kI64});
        return dropout(add(x[0], x[1]), ids,
                       {.probability = probability, .instance = 2, .seed = 7});
      };
      const CheckOptions options{.prepare = [](GraphRunner& runner) {
        runner.fill_uniform(runner.id("sample_ids"), 0, 60000);
        runner.state.step = 3;
      }};
      expect_op_is_right(drop_sum, {shape, shape}, 2, options);
    }
}

}  // namespace
}  // namespace ddp::test
