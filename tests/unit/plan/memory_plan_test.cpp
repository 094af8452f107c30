#include "core/plan/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

namespace ddp {
namespace {

std::vector<Lifetime> random_blocks(std::mt19937& random) {
  const std::size_t steps = 1 + random() % 40;
  std::vector<Lifetime> blocks(random() % 60);
  for (Lifetime& block : blocks) {
    const std::size_t a = random() % steps, b = random() % steps;
    block = {.bytes = random() % 10000, .first = std::min(a, b), .last = std::max(a, b)};
  }
  return blocks;
}

TEST(PlanArena, BlocksAliveTogetherNeverOverlap) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const std::vector<Lifetime> blocks = random_blocks(random);
    const ArenaLayout layout = plan_arena(blocks);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(layout.offsets[i] % kArenaAlignment, 0U);
      EXPECT_LE(layout.offsets[i] + blocks[i].bytes, layout.bytes);
      for (std::size_t j = 0; j < i; ++j) {
        const bool together =
            blocks[i].first <= blocks[j].last && blocks[j].first <= blocks[i].last;
        const bool overlap = layout.offsets[i] < layout.offsets[j] + blocks[j].bytes &&
                             layout.offsets[j] < layout.offsets[i] + blocks[i].bytes;
        EXPECT_FALSE(together && overlap && blocks[i].bytes > 0 && blocks[j].bytes > 0)
            << "blocks " << i << ", " << j;
      }
    }
  }
}

TEST(PlanArena, FloorIsTheLargestSumAliveAndNeverAboveTheArena) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    const std::vector<Lifetime> blocks = random_blocks(random);
    const ArenaLayout layout = plan_arena(blocks);
    std::size_t most = 0;
    for (std::size_t step = 0; step < 40; ++step) {
      std::size_t alive = 0;
      for (const Lifetime& block : blocks)
        if (block.first <= step && step <= block.last)
          alive += (block.bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
      most = std::max(most, alive);
    }
    EXPECT_EQ(layout.floor, most);
    EXPECT_GE(layout.bytes, layout.floor);
  }
}

TEST(PlanArena, ReusesTheMemoryOfWhatHasDied) {
  const ArenaLayout layout = plan_arena({{1024, 0, 1}, {1024, 2, 3}, {1024, 4, 5}});
  EXPECT_EQ(layout.bytes, 1024U);
}

TEST(PlanArena, KeepsABlockThroughItsLastStep) {
  const ArenaLayout layout = plan_arena({{1024, 0, 1}, {1024, 1, 2}});
  EXPECT_EQ(layout.bytes, 2048U);
}

}  // namespace
}  // namespace ddp
