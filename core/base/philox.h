// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011). Randomness here is a function of (seed, stream, step, sample id, block),
// never a state that has to be saved or that depends on which rank or thread draws.
#pragma once

#include <array>
#include <cstdint>

namespace ddp {

/// What a random number is drawn for; a stream never shares numbers with another one.
enum class RandomStream : std::uint32_t {
  kInit = 1,
  kShuffle = 2,
  kAugment = 3,
  kDropout = 4,
  kSynthetic = 5
};

struct PhiloxKey {
  std::uint32_t low = 0, high = 0;
};

/// Key of one stream. `instance` tells apart several users of a stream (the third dropout, the
/// epoch of a shuffle).
constexpr PhiloxKey philox_key(std::uint64_t seed, RandomStream stream,
                               std::uint64_t instance = 0) {
  // SplitMix64 finaliser: neighbouring seeds and instances give unrelated keys.
  std::uint64_t z =
      seed + 0x9e3779b97f4a7c15ULL * (static_cast<std::uint64_t>(stream) + (instance << 8) + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  z ^= z >> 31;
  return {static_cast<std::uint32_t>(z), static_cast<std::uint32_t>(z >> 32)};
}

using PhiloxBlock = std::array<std::uint32_t, 4>;

/// Four independent uniform 32-bit numbers for one counter.
constexpr PhiloxBlock philox(PhiloxKey key, PhiloxBlock counter) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = 0xD2511F53ULL * counter[0];
    const std::uint64_t p1 = 0xCD9E8D57ULL * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key.low,
               static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key.high,
               static_cast<std::uint32_t>(p0)};
    key.low += 0x9E3779B9U;
    key.high += 0xBB67AE85U;
  }
  return counter;
}

/// Block `block` of the numbers that belong to `sample` in optimizer step `step`.
constexpr PhiloxBlock philox(PhiloxKey key, std::uint64_t step, std::uint64_t sample,
                             std::uint32_t block) {
  return philox(key, {block, static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(sample),
                      static_cast<std::uint32_t>(sample >> 32) ^
                          (static_cast<std::uint32_t>(step >> 32) << 16)});
}

/// Uniform in [0, 1) with 24 bits, exact in float.
constexpr float uniform_float(std::uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24F;
}

/// Uniform in [0, 1) with 53 bits, from two numbers.
constexpr double uniform_double(std::uint32_t high, std::uint32_t low) {
  return static_cast<double>(((static_cast<std::uint64_t>(high) << 32) | low) >> 11) * 0x1p-53;
}

/// Uniform integer in [0, n), n <= 2^32 (multiply-shift; the bias is below n / 2^32).
constexpr std::uint32_t uniform_below(std::uint32_t bits, std::uint32_t n) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(bits) * n) >> 32);
}

}  // namespace ddp
