#include "core/base/hash.h"

#include <fmt/format.h>

// GCC 12 takes the deliberately undefined operands of its own AVX-512 intrinsics for a mistake once
// they are inlined.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <xxhash.h>

namespace ddp {

std::uint64_t hash64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::string hash64_hex(std::span<const std::byte> bytes) {
  return fmt::format("{:016x}", hash64(bytes));
}

std::string hash64_hex(std::string_view text) { return hash64_hex(std::as_bytes(std::span(text))); }

std::string hash128_hex(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string hash128_hex(std::string_view text) {
  return hash128_hex(std::as_bytes(std::span(text)));
}

}  // namespace ddp
