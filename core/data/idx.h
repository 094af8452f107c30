// Reader of idx files (the format of MNIST, http://yann.lecun.com/exdb/mnist): a big-endian header
// with element type and extents, then the elements. Everything the header says is checked, and
// memory grows only with bytes that are truly there, so a wrong header cannot ask for more than the
// file holds. Used to open image sets.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/data/byte_source.h"
#include "core/data/normalisation.h"
#include "core/tensor/shape.h"

namespace ddp {

class IdxReader {
 public:
  static constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

  /// Opens `file`, plain or gzip, and checks its header: unsigned bytes, `rank` extents (1..3), at
  /// least one record, further extents in 1..4096. DataError names the byte that is wrong.
  IdxReader(const std::filesystem::path& file, int rank);

  const std::string& file() const { return source_.file(); }
  const Shape& extents() const { return extents_; }  ///< [records, ...]
  std::int64_t records() const { return extents_[0]; }
  std::int64_t record_bytes() const { return extents_.elements() / records(); }
  /// Where record `record` starts, in bytes of the unpacked file.
  std::int64_t offset(std::int64_t record) const;
  /// "byte 17" or, of a gzip file, "unpacked byte 17": for messages.
  std::string byte_name(std::int64_t byte) const;

  /// Reads the file to its end and returns the first `keep` records; called once. `histogram`, when
  /// given, counts the bytes of all records. RecordError where the file ends too early, DataError
  /// when bytes follow the last record.
  std::vector<std::uint8_t> read(std::int64_t keep = kAll, ByteHistogram* histogram = nullptr);
  /// The same, appended to `data`; what was read before an error stays there.
  void read_into(std::vector<std::uint8_t>& data, std::int64_t keep = kAll,
                 ByteHistogram* histogram = nullptr);

 private:
  void check_magic(std::span<const std::uint8_t> magic, int rank) const;
  Shape parse_extents(std::span<const std::uint8_t> header) const;

  ByteSource source_;
  Shape extents_;
};

}  // namespace ddp
