#include "core/ops/gelu/gelu.h"

#include <cmath>
#include <limits>
#include <numbers>

#include <gmock/gmock.h>

#include "tests/support/gradcheck.h"

namespace ddp::test {
namespace {

std::vector<double> gelu_of(const std::vector<double>& x, const std::string& approximate,
                            DType dtype) {
  Graph graph(dtype);
  const Value input = graph.input("x", {{static_cast<std::int64_t>(x.size())}, dtype});
  const Value y = gelu(input, {.approximate = approximate});
  GraphRunner runner(graph, {.threads = 2});
  runner.set(input.id, x);
  runner.run();
  return runner.get(y.id);
}

TEST(Gelu, FollowsBothFormulas) {
  const std::vector<double> x = random_numbers(101, -6, 6, 1);
  std::vector<double> by_erf, by_tanh;
  for (const double v : x) {
    by_erf.push_back(v / 2 * (1 + std::erf(v / std::numbers::sqrt2)));
    by_tanh.push_back(
        v / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v))));
  }
  for (const auto& [dtype, epsilon] :
       {std::pair{DType::kF32, double{std::numeric_limits<float>::epsilon()}},
        std::pair{DType::kF64, std::numeric_limits<double>::epsilon()}}) {
    expect_close(gelu_of(x, "none", dtype), by_erf, 8 * epsilon, "erf");
    expect_close(gelu_of(x, "tanh", dtype), by_tanh, 8 * epsilon, "tanh");
  }
}

TEST(Gelu, TheTwoFormsDifferButLittle) {
  const std::vector<double> x{-2, -0.5, 0.5, 2};
  const std::vector<double> exact = gelu_of(x, "none", DType::kF64),
                            approximate = gelu_of(x, "tanh", DType::kF64);
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_NE(approximate[i], exact[i]);
    EXPECT_NEAR(approximate[i], exact[i], 1e-3);
  }
}

TEST(Gelu, IsTheIdentityFarUpAndZeroFarDownAndPassesNan) {
  for (const char* approximate : {"none", "tanh"})
    for (const DType dtype : {DType::kF32, DType::kF64})
      EXPECT_THAT(
          gelu_of({0, 1000, 1e30, -1000, -1e30, NAN}, approximate, dtype),
          testing::ElementsAre(0, 1000, testing::DoubleNear(1e30, 1e24), 0, 0, testing::IsNan()));
}

TEST(Gelu, RefusesAnotherApproximation) {
  Graph graph(DType::kF32);
  const Value x = graph.input("x", {{3}, DType::kF32});
  EXPECT_THAT([&] { gelu(x, {.approximate = "sigmoid"}); },
              testing::ThrowsMessage<ConfigError>(
                  testing::HasSubstr("'sigmoid', legal are none and tanh")));
}

}  // namespace
}  // namespace ddp::test
