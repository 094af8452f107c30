#include "core/ops/matmul/matmul.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"

namespace ddp::test {
namespace {

/// [outer..., rows, columns]; stored with both swapped when `transposed`.
Shape stored(std::vector<std::int64_t> outer, std::int64_t rows, std::int64_t columns,
             bool transposed) {
  outer.push_back(transposed ? columns : rows);
  outer.push_back(transposed ? rows : columns);
  return Shape{outer};
}

TEST(MatmulGradient, IsRightInEveryElement) {
  struct Extents {
    std::vector<std::int64_t> outer;
    std::int64_t m, n, k;
  };
  for (const Extents& e : {Extents{{}, 3, 5, 7}, Extents{{2, 3}, 2, 1, 3}, Extents{{3}, 1, 2, 1},
                           Extents{{1, 2, 1}, 4, 3, 2}})
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true}) {
        const Shape a = stored(e.outer, e.m, e.k, transpose_a);
        const Shape b = stored(e.outer, e.k, e.n, transpose_b);
        SCOPED_TRACE(fmt::format("{}{} x {}{}", a.to_string(), transpose_a ? "T" : "",
                                 b.to_string(), transpose_b ? "T" : ""));
        expect_op_is_right(
            [&](Graph&, std::span<const Value> inputs) {
              return matmul(inputs[0], inputs[1],
                            {.transpose_a = transpose_a, .transpose_b = transpose_b});
            },
            {a, b}, static_cast<int>(std::max({e.m, e.n, e.k})));
      }
}

TEST(MatmulGradient, OfAValueTimesItselfCountsBothUses) {
  expect_op_is_right(
      [](Graph&, std::span<const Value> x) { return matmul(x[0], x[0], {.transpose_b = true}); },
      {{2, 3, 5}}, 10);
}

}  // namespace
}  // namespace ddp::test
