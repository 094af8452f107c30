// Arena layout by liveness: each tensor gets an offset so that tensors alive at the same time never
// overlap. Pure, so that it can be tested on generated lifetimes.
#pragma once

#include <cstddef>
#include <vector>

namespace ddp {

/// A block needed from step `first` to step `last`, both included.
struct Lifetime {
  std::size_t bytes = 0;
  std::size_t first = 0, last = 0;
};

struct ArenaLayout {
  std::vector<std::size_t> offsets;  ///< by block, aligned to kArenaAlignment
  std::size_t bytes = 0;             ///< size of the arena
  std::size_t floor =
      0;  ///< largest sum of (aligned) blocks alive at one time; no layout is smaller
};

inline constexpr std::size_t kArenaAlignment = 256;

/// Greedy by size: large blocks first, each at the lowest gap free during its whole life.
ArenaLayout plan_arena(const std::vector<Lifetime>& blocks);

}  // namespace ddp
