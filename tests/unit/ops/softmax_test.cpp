#include "core/ops/softmax/softmax.h"

#include <cmath>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>

#include "tests/support/gradcheck.h"

namespace ddp::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsNan;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> softmax_of(const std::vector<double>& x, std::int64_t columns,
                               DType dtype = DType::kF64) {
  Graph graph(dtype);
  const Shape shape{static_cast<std::int64_t>(x.size()) / columns, columns};
  const Value input = graph.input("x", {shape, dtype});
  const Value y = softmax(input);
  GraphRunner runner(graph, {.threads = 2});
  runner.set(input.id, x);
  runner.run();
  return runner.get(y.id);
}

TEST(Softmax, FollowsTheDefinition) {
  constexpr std::int64_t kRows = 3, kColumns = 45;
  const std::vector<double> x = random_numbers(kRows * kColumns, -5, 5, 1);
  std::vector<double> expected;
  for (auto row = x.begin(); row != x.end(); row += kColumns) {
    double total = 0;
    for (auto e = row; e != row + kColumns; ++e) total += std::exp(*e);
    for (auto e = row; e != row + kColumns; ++e) expected.push_back(std::exp(*e) / total);
  }
  expect_close(softmax_of(x, kColumns), expected, 8 * std::numeric_limits<double>::epsilon(),
               "float64");
  expect_close(softmax_of(x, kColumns, DType::kF32), expected,
               8 * std::numeric_limits<float>::epsilon(), "float32");
}

TEST(Softmax, RowsAddUpToOneWhateverTheScoresAre) {
  for (const double size : {1.0, 1e3, 1e30}) {
    constexpr std::int64_t kColumns = 100;
    const std::vector<double> y =
        softmax_of(random_numbers(kColumns, -size, size, 3), kColumns, DType::kF32);
    EXPECT_NEAR(std::accumulate(y.begin(), y.end(), 0.0), 1,
                kColumns * std::numeric_limits<float>::epsilon());
  }
}

TEST(Softmax, LargeScoresNeitherOverflowNorVanish) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    EXPECT_THAT(softmax_of({1e30, -1e30, -1e30, -1e30}, 2, dtype), ElementsAre(1, 0, 0.5, 0.5));
    EXPECT_THAT(softmax_of({1000, 1000, 1000, 1000}, 4, dtype), Each(0.25));
  }
}

TEST(Softmax, MaskedScoresGetExactlyZero) {
  EXPECT_THAT(softmax_of({2, -kInfinity, 2, -kInfinity}, 4), ElementsAre(0.5, 0, 0.5, 0));
}

TEST(Softmax, OfOneElementIsOne) {
  EXPECT_THAT(softmax_of({-7, 0, 1e30}, 1, DType::kF32), Each(1));
}

TEST(Softmax, NanStaysInItsRowWhereverItStands) {
  for (std::size_t place = 0; place < 40; ++place) {
    std::vector<double> x(80, 0.5);
    x[place] = kNan;
    const std::vector<double> y = softmax_of(x, 40);
    EXPECT_THAT(std::vector(y.begin(), y.begin() + 40), Each(IsNan())) << place;
    EXPECT_THAT(std::vector(y.begin() + 40, y.end()), Each(testing::DoubleEq(1.0 / 40))) << place;
  }
}

TEST(Softmax, NothingButMinusInfinityIsNan) {
  EXPECT_THAT(softmax_of({-kInfinity, -kInfinity}, 2), Each(IsNan()));
}

TEST(Softmax, RefusesScalarsAndEmptyRows) {
  Graph graph(DType::kF32);
  for (const Shape& x : {Shape{}, Shape{2, 0}})
    EXPECT_THROW(softmax(graph.input("x", {x, DType::kF32})), ConfigError) << x.to_string();
}

}  // namespace
}  // namespace ddp::test
