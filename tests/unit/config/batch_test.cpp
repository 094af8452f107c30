#include "core/config/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/unit/config/config_testing.h"

namespace ddp {
namespace {

using testing::HasSubstr;

struct Asked {
  std::int64_t global = 0, micro = 0, accum = 0;  // 0: not set
};

BatchSizes batch(const Asked& asked, int ranks) {
  Configuration configuration;
  if (asked.global != 0)
    configuration.values.set_global_batch(static_cast<std::int32_t>(asked.global));
  if (asked.micro != 0)
    configuration.values.set_micro_batch(static_cast<std::int32_t>(asked.micro));
  if (asked.accum != 0) configuration.values.set_accum(static_cast<std::int32_t>(asked.accum));
  for (const int field : {TrainConfig::kGlobalBatchFieldNumber, TrainConfig::kMicroBatchFieldNumber,
                          TrainConfig::kAccumFieldNumber})
    if (is_set(configuration.values, config_field(field))) configuration.origins[field] = "flag";
  return resolve_batch(configuration, ranks);
}

std::string batch_error(const Asked& asked, int ranks) {
  return config_error([&] { batch(asked, ranks); });
}

TEST(BatchSizes, FollowFromAnyTwo) {
  for (const int ranks : {1, 2, 3, 4, 7, 8, 64})
    for (const std::int64_t micro : {1, 2, 3, 16, 50})
      for (const std::int64_t accum : {1, 2, 3, 8}) {
        const BatchSizes whole{ranks * micro * accum, micro, accum};
        EXPECT_EQ(batch({.micro = micro, .accum = accum}, ranks), whole);
        EXPECT_EQ(batch({.global = whole.global, .accum = accum}, ranks), whole);
        EXPECT_EQ(batch({.global = whole.global, .micro = micro}, ranks), whole);
        EXPECT_EQ(batch({.global = whole.global, .micro = micro, .accum = accum}, ranks), whole);
      }
}

TEST(BatchSizes, FollowFromOneWithAccumOne) {
  EXPECT_EQ(batch({.global = 96}, 3), (BatchSizes{96, 32, 1}));
  EXPECT_EQ(batch({.micro = 32}, 3), (BatchSizes{96, 32, 1}));
}

TEST(BatchSizes, OfNothingAskedAreWhole) {
  EXPECT_EQ(batch({}, 1), (BatchSizes{128, 128, 1}));
  EXPECT_EQ(batch({}, 4), (BatchSizes{128, 32, 1}));
  for (std::int64_t ranks = 1; ranks <= 300; ++ranks)
    for (const std::int64_t accum : {0, 3}) {
      const BatchSizes sizes = batch({.accum = accum}, static_cast<int>(ranks));
      const std::int64_t unit = ranks * std::max<std::int64_t>(accum, 1);
      EXPECT_EQ(sizes.global, ranks * sizes.micro * sizes.accum);
      EXPECT_GE(sizes.micro, 1);
      // No multiple of ranks x accum is nearer to 128.
      if (sizes.global > unit) {
        EXPECT_LE(std::abs(sizes.global - 128) * 2, unit);
      }
    }
}

TEST(BatchSizes, ThatDoNotFitNameTheNearestThatDo) {
  EXPECT_EQ(batch_error({.global = 100}, 3),
            "--global-batch 100 is not divisible by 3 ranks x accum 1; nearest: --global-batch 99 "
            "or 102");
  EXPECT_EQ(batch_error({.global = 2}, 3),
            "--global-batch 2 is not divisible by 3 ranks x accum 1; nearest: --global-batch 3");
  EXPECT_EQ(batch_error({.global = 100, .accum = 4}, 3),
            "--global-batch 100 is not divisible by 3 ranks x --accum 4; nearest: --global-batch "
            "96 or 108");
  EXPECT_EQ(batch_error({.global = 100, .micro = 16}, 4),
            "--global-batch 100 is not divisible by 4 ranks x --micro-batch 16; nearest: "
            "--global-batch 64 or 128, or --micro-batch 5 or 25");
  EXPECT_EQ(batch_error({.global = 16, .micro = 16}, 2),
            "--global-batch 16 is not divisible by 2 ranks x --micro-batch 16; nearest: "
            "--global-batch 32, or --micro-batch 8");
}

TEST(BatchSizes, ThatContradictEachOtherAreNamed) {
  EXPECT_EQ(batch_error({.global = 100, .micro = 16, .accum = 2}, 3),
            "--global-batch 100 contradicts --micro-batch 16 x --accum 2 x 3 ranks = 96; leave one "
            "of the three out");
}

TEST(BatchSizes, BeyondTheLargestAreAnError) {
  EXPECT_THAT(batch_error({.micro = 2'000'000'000, .accum = 2'000'000'000}, 1000),
              HasSubstr("is a global batch above 2147483647"));
  EXPECT_THAT(batch_error({.micro = 2'000'000'000}, 2), HasSubstr("above 2147483647"));
  EXPECT_THAT(batch_error({.accum = 2'000'000'000}, 2), HasSubstr("above 2147483647"));
  EXPECT_EQ(batch({.micro = 2'147'483'647}, 1).global, 2'147'483'647);
}

TEST(BatchSizes, SayWhichFileAValueCameFrom) {
  const Configuration configuration = parse_config("seed: 1\nglobal_batch: 101", "run.pbtxt");
  EXPECT_THAT(config_error([&] { resolve_batch(configuration, 2); }),
              HasSubstr("global_batch 101 (run.pbtxt:2) is not divisible by 2 ranks"));
}

}  // namespace
}  // namespace ddp
