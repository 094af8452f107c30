#include "core/ops/embedding/embedding.h"

#include <gtest/gtest.h>

#include "core/ops/add/add.h"
#include "core/ops/linear/linear.h"
#include "tests/support/gradcheck.h"

namespace ddp::test {
namespace {

constexpr std::int64_t kEntries = 5;

Value look_up(Graph& graph, const Shape& ids, std::int64_t features) {
  const Value input = graph.input("ids", {ids, DType::kI32});
  return embedding(input, {.name = "table", .entries = kEntries, .features = features});
}

/// Ids that repeat, and leave an entry out where there are few.
const CheckOptions kRepeatedIds{.prepare = [](GraphRunner& runner) {
  runner.fill_uniform(runner.id("ids"), 0, static_cast<double>(kEntries));
}};

TEST(EmbeddingGradient, IsRightInEveryElement) {
  for (const Shape& ids : {Shape{1}, Shape{23}, Shape{3, 7}, Shape{2, 1, 3, 2}})
    for (const std::int64_t features : {1, 2, 9}) {
      SCOPED_TRACE(fmt::format("{} ids, {} features", ids.to_string(), features));
      expect_op_is_right(
          [&](Graph& graph, std::span<const Value>) { return look_up(graph, ids, features); }, {},
          static_cast<int>(ids.elements()), kRepeatedIds);
    }
}

TEST(EmbeddingGradient, OfATableThatIsAlsoALinearLayerIsTheSumOfBothUses) {
  expect_op_is_right(
      [](Graph& graph, std::span<const Value> inputs) {
        const Value x = add(look_up(graph, {6}, 7), inputs[0]);
        const Value scores = linear(x, {.name = "table", .units = kEntries, .bias = false});
        EXPECT_EQ(graph.parameters().size(), 2U) << "the table is not shared";
        return scores;
      },
      {{6, 7}}, 32, kRepeatedIds);
}

}  // namespace
}  // namespace ddp::test
