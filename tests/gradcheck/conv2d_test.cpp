#include "core/ops/conv2d/conv2d.h"

#include <gtest/gtest.h>

#include "core/graph/differentiate.h"
#include "tests/support/gradcheck.h"

namespace ddp::test {
namespace {

struct Case {
  Shape x;
  std::int64_t filters, kernel, stride, pad;
};

// Rows wider than a tile; channels that fill vectors of 4, 8 and 16 exactly, partly, or several of
// them; strides that leave pixels unused or are larger than the kernel; padding beyond the kernel.
const Case kCases[] = {
    {{2, 5, 4, 3}, 2, 3, 1, 1}, {{3, 4, 5, 1}, 5, 3, 1, 0},   {{2, 3, 3, 4}, 3, 1, 1, 0},
    {{2, 7, 6, 2}, 3, 5, 1, 2}, {{1, 3, 17, 2}, 16, 3, 1, 1}, {{1, 2, 3, 17}, 33, 1, 1, 0},
    {{2, 5, 7, 2}, 3, 3, 2, 1}, {{2, 6, 5, 3}, 2, 3, 2, 0},   {{2, 5, 4, 3}, 4, 1, 2, 0},
    {{1, 7, 8, 2}, 3, 5, 2, 2}, {{1, 8, 7, 2}, 3, 2, 3, 1},   {{2, 4, 3, 2}, 3, 1, 1, 1},
    {{1, 5, 5, 2}, 2, 3, 1, 4}, {{1, 6, 7, 2}, 2, 2, 2, 3},   {{1, 3, 3, 2}, 2, 3, 1, 0},
};

TEST(Conv2dGradient, IsRightInEveryElement) {
  for (const auto& [x, filters, kernel, stride, pad] : kCases) {
    SCOPED_TRACE(fmt::format("x {}, {} filters, kernel {}, stride {}, pad {}", x.to_string(),
                             filters, kernel, stride, pad));
    const Conv2d layer{
        .name = "conv", .filters = filters, .kernel = kernel, .stride = stride, .pad = pad};
    // The filter gradient sums over all pixels, the data gradient over filters, the result over a
    // patch.
    const std::int64_t pixels = x[0] * (x[1] + 2 * pad) * (x[2] + 2 * pad);
    const std::int64_t patch = kernel * kernel * std::max(filters, x[3]);
    expect_op_is_right(
        [&](Graph&, std::span<const Value> inputs) { return conv2d(inputs[0], layer); }, {x},
        static_cast<int>(std::max(pixels, patch)));
  }
}

// Nobody asks for the gradient of an image that no parameter leads to.
TEST(Conv2dGradient, OfAnInputIsNotComputed) {
  Graph graph(DType::kF64);
  const Value x = graph.input("x", {{1, 4, 4, 1}, DType::kF64});
  const Value y = conv2d(x, {.name = "conv", .filters = 2, .kernel = 3});
  differentiate(graph, y, graph.input("seed", y.type()));
  ASSERT_EQ(graph.ops().size(), 2U);
  EXPECT_EQ(graph.ops()[1].definition->name, "conv2d_backward_filter");
}

}  // namespace
}  // namespace ddp::test
