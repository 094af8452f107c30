#include "core/telemetry/tensorboard.h"

#include <bit>
#include <cstdint>

#include "core/base/crc32c.h"

namespace ddp {
namespace {

template <class T>
void append_little_endian(std::string& out, T value) {
  static_assert(std::endian::native == std::endian::little);
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

/// The TFRecord format's mask: a checksum of data that holds checksums is then no special value.
std::uint32_t masked_crc32c(std::string_view data) {
  return std::rotr(crc32c(data), 15) + 0xa282ead8U;
}

}  // namespace

void append_event(std::string& out, const tensorboard::Event& event) {
  const std::size_t start = out.size();
  const std::uint64_t length = event.ByteSizeLong();
  append_little_endian(out, length);
  append_little_endian(out, masked_crc32c(std::string_view(out).substr(start)));
  const std::size_t data = out.size();
  event.AppendToString(&out);
  append_little_endian(out, masked_crc32c(std::string_view(out).substr(data)));
}

std::string event_file_opening(double wall_time) {
  tensorboard::Event event;
  event.set_wall_time(wall_time);
  event.set_file_version("brain.Event:2");
  std::string record;
  append_event(record, event);
  return record;
}

}  // namespace ddp
