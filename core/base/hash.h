// Fast non-cryptographic fingerprints (XXH3) of plans, configurations and weights. Equal bytes give
// equal text on every rank and machine; used to compare, never to protect against an adversary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ddp {

/// XXH3 with 64 bits.
std::uint64_t hash64(std::span<const std::byte> bytes);
/// The same as 16 lower-case hexadecimal digits, most significant first.
std::string hash64_hex(std::span<const std::byte> bytes);
std::string hash64_hex(std::string_view text);
/// XXH3 with 128 bits as 32 hexadecimal digits, most significant first.
std::string hash128_hex(std::span<const std::byte> bytes);
std::string hash128_hex(std::string_view text);

}  // namespace ddp
