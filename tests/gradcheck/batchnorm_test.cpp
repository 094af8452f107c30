#include "core/ops/batchnorm/batchnorm.h"

#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"

namespace ddp::test {
namespace {

TEST(BatchNormGradient, MatchesCentralDifferencesWithAndWithoutPadding) {
  for (const bool padded : {false, true})
    for (const Shape& x :
         {Shape{4, 3, 3, 5}, Shape{3, 2, 2, 17}, Shape{5, 33}, Shape{2, 1, 1, 1}}) {
      SCOPED_TRACE(fmt::format("{}{}", x.to_string(), padded ? ", padded" : ""));
      const auto norm = [&](Graph& graph, std::span<const Value> inputs) {
        const Value weights = graph.input("weights", {{x[0]}, DType::kF32});
        return batchnorm(inputs[0], weights, {.name = "bn"});
      };
      const CheckOptions options{.prepare = [&](GraphRunner& runner) {
        std::vector<double> weights(static_cast<std::size_t>(x[0]), 1.0);
        if (padded && x[0] > 2) {
          // As in training: the loss gives padding no gradient.
          weights[1] = 0;
          std::vector<double> seed = runner.get(runner.id("seed"));
          const std::int64_t sample = x.elements() / x[0];
          std::fill_n(seed.begin() + sample, sample, 0.0);
          runner.set(runner.id("seed"), seed);
        }
        runner.set(runner.id("weights"), weights);
      }};
      // A row of the sums enters the division by a deviation that may be far below 1.
      expect_op_is_right(norm, {x}, 64 * static_cast<int>(x.elements() / x[-1]), options);
    }
}

TEST(BatchNormInferenceAndFusedForms, LeaveNoGradientRuleBehind) {
  EXPECT_EQ(op_definition("batchnorm_inference").gradient, nullptr);
  EXPECT_EQ(op_definition("batchnorm_backward").gradient, nullptr);
}

}  // namespace
}  // namespace ddp::test
