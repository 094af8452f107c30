#include "core/plan/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "core/base/round_up.h"

namespace ddp {
namespace {

std::size_t aligned(std::size_t bytes) { return round_up(bytes, kArenaAlignment); }

bool overlap_in_time(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

std::size_t largest_sum_alive(const std::vector<Lifetime>& blocks) {
  std::size_t steps = 0;
  for (const Lifetime& block : blocks) steps = std::max(steps, block.last + 2);
  std::vector<std::size_t> begin(steps), end(steps);
  for (const Lifetime& block : blocks) {
    begin[block.first] += aligned(block.bytes);
    end[block.last + 1] += aligned(block.bytes);
  }
  std::size_t alive = 0, most = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    alive += begin[step];
    alive -= end[step];
    most = std::max(most, alive);
  }
  return most;
}

struct Interval {
  std::size_t begin, end;
};

/// The lowest gap of `bytes` between the taken intervals (sorted by begin).
std::size_t lowest_gap(const std::vector<Interval>& taken, std::size_t bytes) {
  std::size_t offset = 0;
  for (const Interval& interval : taken) {
    if (interval.begin >= offset + bytes) break;
    offset = std::max(offset, interval.end);
  }
  return offset;
}

}  // namespace

ArenaLayout plan_arena(const std::vector<Lifetime>& blocks) {
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return blocks[a].bytes > blocks[b].bytes; });

  ArenaLayout layout{.offsets = std::vector<std::size_t>(blocks.size()), .bytes = 0, .floor = 0};
  std::vector<std::size_t> placed;
  std::vector<Interval> taken;
  for (std::size_t block : order) {
    taken.clear();
    for (std::size_t other : placed)
      if (overlap_in_time(blocks[block], blocks[other]))
        taken.push_back(
            {layout.offsets[other], layout.offsets[other] + aligned(blocks[other].bytes)});
    std::ranges::sort(taken, {}, &Interval::begin);
    layout.offsets[block] = lowest_gap(taken, aligned(blocks[block].bytes));
    layout.bytes = std::max(layout.bytes, layout.offsets[block] + aligned(blocks[block].bytes));
    placed.push_back(block);
  }
  layout.floor = largest_sum_alive(blocks);
  return layout;
}

}  // namespace ddp
