#include "core/ops/pool/pool.h"

#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"

namespace ddp::test {
namespace {

/// Terms in the longest sum of max pooling: windows that share an input element.
int overlap(const MaxPoolOptions& options) {
  const int stride = options.stride == 0 ? options.kernel : options.stride;
  const int windows = (options.kernel + stride - 1) / stride;
  return windows * windows;
}

TEST(MaxPoolGradient, MatchesCentralDifferences) {
  for (const MaxPoolOptions& options :
       {MaxPoolOptions{.kernel = 2}, MaxPoolOptions{.kernel = 3, .stride = 2, .pad = 1},
        MaxPoolOptions{.kernel = 3, .stride = 1, .pad = 1},
        MaxPoolOptions{.kernel = 2, .stride = 3}, MaxPoolOptions{.kernel = 1}})
    for (const Shape& image : {Shape{2, 7, 5, 3}, Shape{1, 3, 3, 1}, Shape{1, 4, 5, 35}}) {
      SCOPED_TRACE(fmt::format("kernel {} stride {} pad {} on {}", options.kernel, options.stride,
                               options.pad, image.to_string()));
      expect_op_is_right([&](Graph&, std::span<const Value> x) { return max_pool(x[0], options); },
                         {image}, overlap(options));
    }
}

TEST(GlobalAveragePoolGradient, MatchesCentralDifferences) {
  for (const Shape& image : {Shape{3, 5, 3, 7}, Shape{1, 1, 1, 1}, Shape{2, 2, 9, 5}}) {
    SCOPED_TRACE(image.to_string());
    expect_op_is_right([](Graph&, std::span<const Value> x) { return global_average_pool(x[0]); },
                       {image}, static_cast<int>(image[1] * image[2]));
  }
}

}  // namespace
}  // namespace ddp::test
