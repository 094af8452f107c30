#include "core/ops/pool/pool.h"

#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"

namespace ddp::test {
namespace {

/// Windows that share an element of the image.
int overlap(const PoolOptions& options) {
  const int stride = options.stride == 0 ? options.kernel : options.stride;
  const int windows = (options.kernel + stride - 1) / stride;
  return windows * windows;
}

/// Windows that touch, overlap, leave gaps and reach into the padding.
template <class Check>
void for_all_windows(const Check& check) {
  for (const PoolOptions& options :
       {PoolOptions{.kernel = 2}, PoolOptions{.kernel = 3, .stride = 2, .pad = 1},
        PoolOptions{.kernel = 3, .stride = 1, .pad = 1}, PoolOptions{.kernel = 2, .stride = 3},
        PoolOptions{.kernel = 1}})
    for (const Shape& image : {Shape{2, 7, 5, 3}, Shape{1, 3, 3, 1}, Shape{1, 4, 5, 35}}) {
      SCOPED_TRACE(fmt::format("kernel {} stride {} pad {} on {}", options.kernel, options.stride,
                               options.pad, image.to_string()));
      check(image, options);
    }
}

TEST(MaxPoolGradient, MatchesCentralDifferences) {
  for_all_windows([](const Shape& image, const PoolOptions& options) {
    expect_op_is_right([&](Graph&, std::span<const Value> x) { return max_pool(x[0], options); },
                       {image}, overlap(options));
  });
}

TEST(AvgPoolGradient, MatchesCentralDifferences) {
  for_all_windows([](const Shape& image, const PoolOptions& options) {
    expect_op_is_right([&](Graph&, std::span<const Value> x) { return avg_pool(x[0], options); },
                       {image}, options.kernel * options.kernel);
  });
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
