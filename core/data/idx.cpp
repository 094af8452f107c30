#include "core/data/idx.h"

#include <algorithm>
#include <span>

#include "core/base/error.h"

namespace ddp {

namespace {

constexpr std::uint8_t kUnsignedByte = 0x08;
constexpr int kMaxRank = 3;
constexpr std::int64_t kMaxExtent = 4096;
constexpr std::size_t kChunkBytes = 1 << 20;

constexpr std::int64_t header_bytes(int rank) { return 4 + 4 * rank; }

std::int64_t big_endian(std::span<const std::uint8_t, 4> bytes) {
  return (std::int64_t{bytes[0]} << 24) | (bytes[1] << 16) | (bytes[2] << 8) | bytes[3];
}

}  // namespace

IdxReader::IdxReader(const std::filesystem::path& file, int rank) : source_(file) {
  DDP_CHECK(rank >= 1 && rank <= kMaxRank, "idx files of {} dimensions are not read", rank);
  std::array<std::uint8_t, header_bytes(kMaxRank)> bytes{};
  const auto header = std::span(bytes).first(static_cast<std::size_t>(header_bytes(rank)));
  const std::size_t got = source_.read(header);
  check_magic(header.first(std::min<std::size_t>(got, 4)), rank);
  if (got < header.size()) {
    throw DataError(this->file(),
                    "ends at {}, inside its header of {} bytes; copy or download it again",
                    byte_name(static_cast<std::int64_t>(got)), header.size());
  }
  extents_ = parse_extents(header);
}

void IdxReader::check_magic(std::span<const std::uint8_t> magic, int rank) const {
  for (std::size_t i = 0; i < magic.size(); ++i) {
    const std::string where = byte_name(static_cast<std::int64_t>(i));
    if (i < 2 && magic[i] != 0) {
      throw DataError(
          file(), "{} is 0x{:02x}, but an idx file starts with two zero bytes; this is no idx file",
          where, magic[i]);
    }
    if (i == 2 && magic[i] != kUnsignedByte) {
      throw DataError(file(),
                      "{} gives element type 0x{:02x}; convert the file to unsigned bytes (0x08)",
                      where, magic[i]);
    }
    if (i == 3 && magic[i] != rank) {
      throw DataError(file(),
                      "{} gives {} dimensions instead of {} (images have 3, labels 1); are the two "
                      "files swapped?",
                      where, magic[i], rank);
    }
  }
}

Shape IdxReader::parse_extents(std::span<const std::uint8_t> header) const {
  std::array<std::int64_t, kMaxRank> extents{};
  const int rank = header[3];
  std::int64_t bytes = 1;
  for (int d = 0; d < rank; ++d) {
    const std::int64_t at = header_bytes(d);
    const std::int64_t extent = big_endian(header.subspan(static_cast<std::size_t>(at)).first<4>());
    if (d == 0 && extent == 0) {
      throw DataError(file(), "{} says that there are no records; copy or download it again",
                      byte_name(at));
    }
    if (d > 0 && (extent < 1 || extent > kMaxExtent)) {
      throw DataError(file(), "{} gives {} pixels a side; images of 1 to {} are read, resize them",
                      byte_name(at), extent, kMaxExtent);
    }
    extents[static_cast<std::size_t>(d)] = extent;
    bytes *= extent;
  }
  if (bytes > kMaxDataFileBytes) {
    throw DataError(file(),
                    "{} says {} records, {} bytes in all; files of up to {} bytes are read, split "
                    "it",
                    byte_name(4), extents[0], bytes, kMaxDataFileBytes);
  }
  return Shape(std::span(extents).first(static_cast<std::size_t>(rank)));
}

std::int64_t IdxReader::offset(std::int64_t record) const {
  return header_bytes(extents_.rank()) + record * record_bytes();
}

std::string IdxReader::byte_name(std::int64_t byte) const {
  return ddp::byte_name(byte, source_.is_gzip());
}

std::vector<std::uint8_t> IdxReader::read(std::int64_t keep, ByteHistogram* histogram) {
  std::vector<std::uint8_t> data;
  read_into(data, keep, histogram);
  return data;
}

void IdxReader::read_into(std::vector<std::uint8_t>& data, std::int64_t keep,
                          ByteHistogram* histogram) {
  const auto total = static_cast<std::size_t>(extents_.elements());
  const auto kept = static_cast<std::size_t>(std::min(keep, records()) * record_bytes());
  std::vector<std::uint8_t> chunk(std::min(total, kChunkBytes));
  for (std::size_t done = 0; done < total;) {
    const std::size_t wanted = std::min(total - done, chunk.size());
    const std::span<const std::uint8_t> part =
        std::span(chunk).first(source_.read(std::span(chunk).first(wanted)));
    if (done < kept) {
      data.insert(data.end(), part.begin(),
                  part.begin() + static_cast<std::ptrdiff_t>(std::min(part.size(), kept - done)));
    }
    if (histogram != nullptr) {
      for (const std::uint8_t byte : part) ++(*histogram)[byte];
    }
    done += part.size();
    if (part.size() < wanted) {
      const auto end = static_cast<std::int64_t>(done);
      throw RecordError(file(), end / record_bytes(),
                        "the file ends at {}, but its header says {} records of {} bytes; copy or "
                        "download it again",
                        byte_name(offset(0) + end), records(), record_bytes());
    }
  }
  if (std::uint8_t extra = 0; source_.read({&extra, 1}) != 0) {
    throw DataError(
        file(),
        "goes on at {}, but its header says {} records of {} bytes; copy or download it again",
        byte_name(offset(records())), records(), record_bytes());
  }
}

}  // namespace ddp
