// CRC-32C (Castagnoli, RFC 3720 appendix B.4): the checksum of TFRecord files. Pure; the same value
// on every machine.
#pragma once

#include <cstdint>
#include <string_view>

namespace ddp {

/// Of the bytes of `data`; 0 for none.
std::uint32_t crc32c(std::string_view data);

}  // namespace ddp
