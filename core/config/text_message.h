// Protobuf messages in text format, read strictly: every error opens with FILE:LINE:COL of what is
// wrong, and an unknown field is answered with the nearest one. Configurations and models are read
// with it.
#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace ddp {

/// A place in a text; lines and columns count from 1, a tab is one column.
struct TextPosition {
  std::string_view text;
  std::size_t offset = 0;
  std::string line() const;             ///< "3"
  std::string line_and_column() const;  ///< "3:7"
};
/// The place that protobuf's parser recorded.
TextPosition position_of(std::string_view text,
                         google::protobuf::TextFormat::ParseLocation location);

/// Fills `message` from `text` and says where each field stood; `name` stands for the file in
/// errors. ConfigError for bad syntax or an unknown field (with the nearest name).
void read_text_message(const std::string& text, const std::string& name,
                       google::protobuf::Message& message,
                       google::protobuf::TextFormat::ParseInfoTree& positions);

/// The contents of a file; a ConfigError that opens with `what` when it cannot be read.
std::string read_text_file(const std::string& path, std::string_view what);

}  // namespace ddp
