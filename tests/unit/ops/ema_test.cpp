// The moving average of a slab: its recurrence, and what it leaves alone.
#include <algorithm>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include "core/ops/optimizer/optimizer.h"
#include "tests/support/gradcheck.h"
#include "tests/unit/ops/slab_op.h"

namespace ddp::test {
namespace {

constexpr std::size_t kElements = 37;

std::vector<double> value_after(std::uint64_t update) {
  return random_numbers(kElements, -1, 1, update);
}

TEST(Ema, FollowsItsRecurrenceWithTheRampOfItsDecay) {
  for (const auto& [dtype, epsilon] :
       {std::pair<DType, double>{DType::kF64, std::numeric_limits<double>::epsilon()},
        std::pair<DType, double>{DType::kF32, std::numeric_limits<float>::epsilon()}})
    for (const double decay : {0.1, 0.5, 0.999}) {
      Slabs average{value_after(0)};
      std::vector<double> expected = average[0];
      for (std::uint64_t update = 1; update <= 20; ++update) {
        StepState state{.update = update};
        const std::vector<double> value = value_after(update);
        run_slab_op("ema", ema_attributes(decay), {value}, average, state, 2, dtype);
        const auto u = static_cast<double>(update);
        const double d = std::min(decay, (1 + u) / (10 + u));
        for (std::size_t i = 0; i < kElements; ++i)
          expected[i] = d * expected[i] + (1 - d) * value[i];
      }
      // Each step forgets a part of the roundings before it: about three a step remain.
      expect_close(average[0], expected, 20 * epsilon, fmt::format("decay {}", decay));
    }
}

TEST(Ema, OfConstantWeightsIsTheConstant) {
  for (const DType dtype : {DType::kF64, DType::kF32}) {
    Slabs average{value_after(0)};
    StepState none{.skip = 1};
    run_slab_op("ema", ema_attributes(0.9), {average[0]}, average, none, 1, dtype);  // rounds
    const Slabs constant = average;
    for (std::uint64_t update = 1; update <= 50; ++update) {
      StepState state{.update = update};
      run_slab_op("ema", ema_attributes(0.9), {constant[0]}, average, state, 1, dtype);
    }
    EXPECT_EQ(average, constant);
  }
}

TEST(Ema, SkippedStepChangesNothing) {
  Slabs average{value_after(0)};
  const Slabs before = average;
  StepState state{.skip = 1, .update = 3};
  run_slab_op("ema", ema_attributes(0.9), {std::vector<double>(kElements, std::nan(""))}, average,
              state);
  EXPECT_EQ(average, before);
}

TEST(Ema, GivesTheSameBytesForAnyNumberOfThreads) {
  const auto run = [](int threads) {
    Slabs average{value_after(0)};
    StepState state{.update = 100};
    run_slab_op("ema", ema_attributes(0.99), {value_after(1)}, average, state, threads,
                DType::kF32);
    return average;
  };
  for (const int threads : {2, 3, 5}) EXPECT_EQ(run(threads), run(1));
}

}  // namespace
}  // namespace ddp::test
