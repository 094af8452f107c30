// The JSON header of a safetensors file, parsed and checked apart from its tensors' bytes. Pure:
// the reader calls it, and malformed headers of every kind are tested through it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/safetensors.h"

namespace ddp {

struct SafetensorsHeader {
  struct Entry {
    std::string name;
    TensorType type;
    std::size_t begin = 0, end = 0;  ///< bytes, from the start of the byte buffer
  };
  SafetensorsMetadata metadata;
  std::vector<Entry> entries;  ///< by `begin`; together they are [0, buffer_bytes), each byte once
};

/// Parses the header that stands at byte 8 of `file` and is followed by `buffer_bytes` bytes.
/// StorageError otherwise.
SafetensorsHeader parse_safetensors_header(std::string_view file, std::string_view header,
                                           std::size_t buffer_bytes);

/// A StorageError for a file that breaks the format, with what a user can do about it.
template <class... Args>
StorageError malformed_file(std::string_view file, fmt::format_string<Args...> format,
                            Args&&... args) {
  return StorageError("{}: {}; the file is damaged or incomplete, use another copy", file,
                      fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace ddp
