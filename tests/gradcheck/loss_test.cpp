#include "core/ops/loss/loss.h"

#include <gtest/gtest.h>

#include "core/ops/add/add.h"
#include "tests/support/gradcheck.h"

namespace ddp::test {
namespace {

TEST(SoftmaxCrossEntropyGradient, MatchesCentralDifferences) {
  for (const double smoothing : {0.0, 0.1, 1.0})
    for (const Shape& logits : {Shape{5, 7}, Shape{3, 2}, Shape{2, 1}}) {
      SCOPED_TRACE(fmt::format("label smoothing {}, logits {}", smoothing, logits.to_string()));
      const auto loss = [&](Graph& graph, std::span<const Value> x) {
        const Value labels = graph.input("labels", {{logits[0]}, DType::kI32});
        const Value weights = graph.input("weights", {{logits[0]}, DType::kF32});
        return softmax_cross_entropy(add(x[0], x[1]), labels, weights,
                                     {.label_smoothing = smoothing});
      };
      const CheckOptions options{
          .low = -4, .high = 4, .prepare = [&](GraphRunner& runner) {
            runner.fill_uniform(runner.id("labels"), 0, static_cast<double>(logits[1]));
            std::vector<double> weights(static_cast<std::size_t>(logits[0]), 1.0);
            weights[0] = 0;
            weights.back() = 2.5;
            runner.set(runner.id("weights"), weights);
          }};
      expect_op_is_right(loss, {logits, logits}, 2 * static_cast<int>(logits[1]) + 8, options);
    }
}

}  // namespace
}  // namespace ddp::test
