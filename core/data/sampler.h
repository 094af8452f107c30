// Which samples an optimizer step sees: a pure function of (seed, step, position), the same for any
// number of ranks. The permutation of an epoch is a Feistel network over the index range, so any
// step is found in O(1) without memory.
#pragma once

#include <cstdint>

namespace ddp {

/// Bijection on [0, n) that is a function of (seed, epoch).
class Permutation {
 public:
  Permutation(std::int64_t n, std::uint64_t seed, std::uint64_t epoch);
  std::int64_t operator()(std::int64_t index) const;

 private:
  std::int64_t n_;
  int half_bits_;
  std::uint64_t seed_, epoch_;
};

class Sampler {
 public:
  /// `drop_last`: an epoch's incomplete last batch is left out; otherwise it is padded (sample()
  /// returns -1).
  Sampler(std::int64_t size, std::int64_t global_batch, bool drop_last, std::uint64_t seed);

  std::int64_t steps_per_epoch() const;
  /// Index in the data set of position `position` in [0, global_batch) of step `step` (from 0), or
  /// -1 for padding.
  std::int64_t sample(std::int64_t step, std::int64_t position) const;

 private:
  std::int64_t size_, global_batch_;
  bool drop_last_;
  std::uint64_t seed_;
};

}  // namespace ddp
