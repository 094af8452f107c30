#include "core/ops/matmul/matmul.h"

#include <limits>

#include <gmock/gmock.h>

#include "tests/support/gradcheck.h"

namespace ddp::test {
namespace {

using testing::HasSubstr;

/// The element of matrix `i` of `x` at (row, column), after transposition.
double element(const std::vector<double>& x, const Shape& shape, bool transposed, std::int64_t i,
               std::int64_t row, std::int64_t column) {
  if (transposed) std::swap(row, column);
  return x[static_cast<std::size_t>((i * shape[-2] + row) * shape[-1] + column)];
}

// More threads than matrices, so that threads share one, and fewer.
TEST(Matmul, FollowsTheDefinitionForEachMatrix) {
  constexpr std::int64_t kMatrices = 6, kRows = 5, kColumns = 7, kTerms = 4;
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true})
      for (const int threads : {1, 2, 4, 13}) {
        Graph graph(DType::kF64);
        const Value a = graph.input(
            "a",
            {transpose_a ? Shape{2, 3, kTerms, kRows} : Shape{2, 3, kRows, kTerms}, DType::kF64});
        const Value b = graph.input(
            "b", {transpose_b ? Shape{2, 3, kColumns, kTerms} : Shape{2, 3, kTerms, kColumns},
                  DType::kF64});
        const Value c = matmul(a, b, {.transpose_a = transpose_a, .transpose_b = transpose_b});
        ASSERT_EQ(c.shape(), (Shape{2, 3, kRows, kColumns}));
        GraphRunner runner(graph, {.threads = threads});
        runner.fill_uniform(a.id, -1, 1, 1);
        runner.fill_uniform(b.id, -1, 1, 2);
        runner.run();
        const std::vector<double> x = runner.get(a.id), y = runner.get(b.id);
        std::vector<double> expected;
        for (std::int64_t i = 0; i < kMatrices; ++i)
          for (std::int64_t m = 0; m < kRows; ++m)
            for (std::int64_t n = 0; n < kColumns; ++n) {
              double sum = 0;
              for (std::int64_t k = 0; k < kTerms; ++k)
                sum += element(x, a.shape(), transpose_a, i, m, k) *
                       element(y, b.shape(), transpose_b, i, k, n);
              expected.push_back(sum);
            }
        expect_close(
            runner.get(c.id), expected, kTerms * std::numeric_limits<double>::epsilon(),
            fmt::format("transposed {} {}, {} threads", transpose_a, transpose_b, threads));
      }
}

TEST(Matmul, CostsTwoFlopsATerm) {
  Graph graph(DType::kF32);
  const Value a = graph.input("a", {{2, 3, 5}, DType::kF32});
  matmul(a, graph.input("b", {{2, 5, 7}, DType::kF32}));
  matmul(a, graph.input("bt", {{2, 7, 5}, DType::kF32}), {.transpose_b = true});
  matmul(graph.input("at", {{2, 5, 3}, DType::kF32}), graph.input("b2", {{2, 5, 7}, DType::kF32}),
         {.transpose_a = true});
  for (const Op& op : graph.ops()) {
    const Cost cost = op.definition->cost(graph.signature(op));
    EXPECT_EQ(cost.flops, 2.0 * 2 * 3 * 5 * 7) << op.name;
    EXPECT_EQ(cost.bytes, 4.0 * 2 * (3 * 5 + 5 * 7 + 3 * 7)) << op.name;
  }
}

TEST(Matmul, NamesTheLayerAndTheExtentsThatDoNotFit) {
  Graph graph(DType::kF32);
  const auto input = [&](const Shape& shape, DType dtype = DType::kF32) {
    return graph.input("value", {shape, dtype});
  };
  const auto refused = [&](Value a, Value b, MatmulOptions options, const std::string& reason) {
    options.name = "scores";
    EXPECT_THAT([&] { matmul(a, b, options); },
                testing::ThrowsMessage<ConfigError>(
                    testing::AllOf(HasSubstr("layer 'scores'"), HasSubstr(reason))));
  };
  refused(input({3, 4}), input({5, 6}), {}, "a has 4 columns, b has 5 rows");
  refused(input({4, 3}), input({3, 6}), {.transpose_a = true},
          "a transposed has 4 columns, b has 3 rows");
  refused(input({3, 4}), input({4, 6}), {.transpose_b = true},
          "a has 4 columns, b transposed has 6 rows");
  refused(input({2, 3, 4}), input({1, 4, 5}), {}, "axis 0 is 2 in a and 1 in b");
  refused(input({2, 3, 4}), input({4, 5}), {}, "equal rank");
  refused(input({4}), input({4}), {}, "equal rank");
  refused(input({3, 4}), input({4, 5}, DType::kF64), {}, "F32 and F64");
}

}  // namespace
}  // namespace ddp::test
