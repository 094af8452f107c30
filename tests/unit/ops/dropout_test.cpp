#include "core/ops/dropout/dropout.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "core/base/philox.h"
#include "tests/support/graph_runner.h"

namespace ddp::test {
namespace {

/// dropout of ones [ids, features]: the mask times the scale of what is kept.
std::vector<double> masks(const std::vector<double>& ids, std::int64_t features,
                          const DropoutOptions& options, std::uint64_t step) {
  Graph graph(DType::kF64);
  const auto samples = static_cast<std::int64_t>(ids.size());
  const Value x = graph.input("x", {{samples, features}, DType::kF64});
  const Value sample_ids = graph.input("ids", {{samples}, DType::kI64});
  const Value y = dropout(x, sample_ids, options);
  GraphRunner runner(graph, {.threads = 2});
  runner.set(x.id, std::vector<double>(static_cast<std::size_t>(samples * features), 1.0));
  runner.set(sample_ids.id, ids);
  runner.state.step = step;
  runner.run();
  return runner.get(y.id);
}

TEST(Dropout, MaskIsTheDocumentedFunctionOfThePhiloxNumbers) {
  constexpr std::int64_t kFeatures = 203;  // not a multiple of what is computed at once
  const DropoutOptions options{.probability = 0.3, .instance = 4, .seed = 11};
  const std::vector<double> ids{5, 0, 4e12};
  const std::vector<double> actual = masks(ids, kFeatures, options, 9);
  const PhiloxKey key = philox_key(options.seed, RandomStream::kDropout, 4);
  for (std::size_t n = 0; n < ids.size(); ++n)
    for (std::uint32_t e = 0; e < kFeatures; ++e) {
      const std::uint32_t bits = philox(key, 9, static_cast<std::uint64_t>(ids[n]), e / 4)[e % 4];
      const bool kept = static_cast<double>(bits) >= std::round(0.3 * 0x1p32);
      EXPECT_DOUBLE_EQ(actual[n * kFeatures + e], kept ? 1 / 0.7 : 0.0)
          << "sample " << n << ", element " << e;
    }
}

TEST(Dropout, MaskBelongsToTheSampleNotToItsPlace) {
  const DropoutOptions options{.probability = 0.5};
  const std::vector<double> both = masks({17, 3}, 70, options, 1);
  const std::vector<double> one = masks({3}, 70, options, 1);
  EXPECT_EQ(std::vector<double>(both.begin() + 70, both.end()), one);
}

TEST(Dropout, SeedInstanceStepAndSampleChangeTheMask) {
  const DropoutOptions options{.probability = 0.5, .instance = 1, .seed = 1};
  const std::vector<double> mask = masks({1}, 64, options, 1);
  EXPECT_NE(mask, masks({2}, 64, options, 1));
  EXPECT_NE(mask, masks({1}, 64, options, 2));
  EXPECT_NE(mask, masks({1}, 64, {.probability = 0.5, .instance = 2, .seed = 1}, 1));
  EXPECT_NE(mask, masks({1}, 64, {.probability = 0.5, .instance = 1, .seed = 2}, 1));
  EXPECT_EQ(mask, masks({1}, 64, options, 1));
}

TEST(Dropout, DropsTheAskedShare) {
  constexpr double kElements = 100000;
  for (const double probability : {0.1, 0.5, 0.9}) {
    const std::vector<double> mask =
        masks({1}, static_cast<std::int64_t>(kElements), {.probability = probability}, 1);
    const auto dropped = static_cast<double>(std::count(mask.begin(), mask.end(), 0.0));
    const double deviation = std::sqrt(kElements * probability * (1 - probability));
    EXPECT_NEAR(dropped, kElements * probability, 5 * deviation);
  }
}

TEST(Dropout, ProbabilityZeroAddsNoOp) {
  Graph graph(DType::kF32);
  const Value x = graph.input("x", {{2, 3}, DType::kF32});
  const Value ids = graph.input("ids", {{2}, DType::kI64});
  EXPECT_EQ(dropout(x, ids, {.probability = 0}), x);
  EXPECT_TRUE(graph.ops().empty());
}

TEST(Dropout, RefusesIllegalProbabilitiesAndIds) {
  Graph graph(DType::kF32);
  const Value x = graph.input("x", {{2, 3}, DType::kF32});
  const Value ids = graph.input("ids", {{2}, DType::kI64});
  EXPECT_THROW(dropout(x, ids, {.probability = 1}), ConfigError);
  EXPECT_THROW(dropout(x, ids, {.probability = -0.1}), ConfigError);
  EXPECT_THROW(dropout(x, graph.input("few", {{1}, DType::kI64}), {.probability = 0.5}),
               ConfigError);
  EXPECT_THROW(dropout(x, graph.input("floats", {{2}, DType::kF32}), {.probability = 0.5}),
               ConfigError);
}

}  // namespace
}  // namespace ddp::test
