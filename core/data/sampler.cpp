#include "core/data/sampler.h"

#include "core/base/error.h"
#include "core/base/philox.h"

namespace ddp {

namespace {
// Patarin, "Luby-Rackoff: 7 Rounds Are Enough for 2^n(1-eps) Security", CRYPTO 2003.
constexpr std::uint32_t kFeistelRounds = 7;
}  // namespace

Permutation::Permutation(std::int64_t n, std::uint64_t seed, std::uint64_t epoch)
    : n_(n), half_bits_(1), seed_(seed), epoch_(epoch) {
  DDP_CHECK(n >= 1 && n <= (std::int64_t{1} << 62), "a permutation of {} items was asked for", n);
  while ((std::int64_t{1} << (2 * half_bits_)) < n) ++half_bits_;
}

std::int64_t Permutation::operator()(std::int64_t index) const {
  DDP_CHECK(index >= 0 && index < n_, "item {} of a permutation of {} was asked for", index, n_);
  const PhiloxKey key = philox_key(seed_, RandomStream::kShuffle, epoch_);
  const std::uint32_t mask = (1U << half_bits_) - 1;
  auto x = static_cast<std::uint64_t>(index);
  // The network permutes [0, 4^half_bits), less than four times n. Walking its cycle until the
  // range is met again makes that a permutation of [0, n) (Black and Rogaway, "Ciphers with
  // Arbitrary Finite Domains", CT-RSA 2002).
  do {
    auto left = static_cast<std::uint32_t>(x >> half_bits_);
    auto right = static_cast<std::uint32_t>(x) & mask;
    for (std::uint32_t round = 0; round < kFeistelRounds; ++round) {
      const std::uint32_t mixed = left ^ (philox(key, PhiloxBlock{right, round, 0, 0})[0] & mask);
      left = right;
      right = mixed;
    }
    x = (static_cast<std::uint64_t>(left) << half_bits_) | right;
  } while (x >= static_cast<std::uint64_t>(n_));
  return static_cast<std::int64_t>(x);
}

Sampler::Sampler(std::int64_t size, std::int64_t global_batch, bool drop_last, std::uint64_t seed)
    : size_(size), global_batch_(global_batch), drop_last_(drop_last), seed_(seed) {
  DDP_CHECK(size >= 1 && global_batch >= 1, "a sampler needs samples and a batch, not {} and {}",
            size, global_batch);
}

std::int64_t Sampler::steps_per_epoch() const {
  return drop_last_ ? size_ / global_batch_ : (size_ + global_batch_ - 1) / global_batch_;
}

std::int64_t Sampler::sample(std::int64_t step, std::int64_t position) const {
  const std::int64_t steps = steps_per_epoch();
  DDP_CHECK(steps > 0, "a batch of {} was asked for from {} samples", global_batch_, size_);
  DDP_CHECK(step >= 0 && position >= 0 && position < global_batch_,
            "position {} of step {} was asked for in a batch of {}", position, step, global_batch_);
  const std::int64_t in_epoch = step % steps * global_batch_ + position;
  if (in_epoch >= size_) return -1;
  return Permutation(size_, seed_, static_cast<std::uint64_t>(step / steps))(in_epoch);
}

}  // namespace ddp
