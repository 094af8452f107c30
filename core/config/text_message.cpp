#include "core/config/text_message.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/nearest.h"

namespace ddp {
namespace {

namespace pb = google::protobuf;

/// Byte offset of a position as protobuf counts it: from 0, and a tab ends at a multiple of 8
/// columns.
std::size_t offset_of(std::string_view text, int line, int column) {
  std::size_t offset = 0;
  for (int i = 0; i < line; ++i) offset = text.find('\n', offset) + 1;
  for (int at = 0; at < column && offset < text.size(); ++offset)
    at = text[offset] == '\t' ? at / 8 * 8 + 8 : at + 1;
  return offset;
}

/// "LINE" and "LINE:COL" of an offset, both from 1; a tab is one column, as in most editors.
std::string line_of(std::string_view text, std::size_t offset) {
  return std::to_string(std::ranges::count(text.substr(0, offset), '\n') + 1);
}
std::string line_and_column(std::string_view text, std::size_t offset) {
  const std::size_t line_start = text.substr(0, offset).rfind('\n') + 1;
  return fmt::format("{}:{}", line_of(text, offset), offset - line_start + 1);
}

/// Keeps the first error of a parse: those that follow are consequences of it.
class FirstError : public pb::io::ErrorCollector {
 public:
  void AddError(int line, pb::io::ColumnNumber column, const std::string& message) override {
    if (!message_.empty()) return;
    line_ = std::max(line, 0);
    column_ = std::max(column, 0);
    message_ = message;
  }
  std::size_t offset(std::string_view text) const { return offset_of(text, line_, column_); }
  const std::string& message() const { return message_; }

 private:
  int line_ = 0, column_ = 0;
  std::string message_;
};

/// The fields of the message type that the parser's sentence names, or of `root`.
std::vector<std::string> fields_of(const pb::Descriptor& root, const std::string& sentence) {
  const pb::Descriptor* type = &root;
  const std::size_t open = sentence.find('"'), close = sentence.find('"', open + 1);
  if (close != sentence.npos)
    if (const auto* found =
            root.file()->pool()->FindMessageTypeByName(sentence.substr(open + 1, close - open - 1)))
      type = found;
  std::vector<std::string> names;
  for (int i = 0; i < type->field_count(); ++i) names.push_back(type->field(i)->name());
  return names;
}

[[noreturn]] void fail(std::string_view text, const std::string& name, const FirstError& error,
                       const pb::Descriptor& root) {
  static constexpr std::string_view kUnknown = "has no field named \"";
  std::size_t offset = error.offset(text);
  const std::string& message = error.message();
  const std::size_t at = message.find(kUnknown);
  if (at == message.npos && text.find_first_not_of(" \t\r\n", offset) == text.npos)
    throw ConfigError("{}:{}: the text ends before it is complete; is a closing }} missing?", name,
                      line_and_column(text, offset));
  if (at == message.npos)
    throw ConfigError("{}:{}: {}", name, line_and_column(text, offset), message);
  // The parser stops behind the name, and at a dash in it; the user typed the word around it.
  const std::size_t quoted = at + kUnknown.size();
  offset = text.rfind(message.substr(quoted, message.rfind('"') - quoted), offset);
  DDP_CHECK(offset != text.npos, "{}: no field where the parser says: {}", name, message);
  const std::size_t end = text.find_first_of(": \t\r\n{<[#;,", offset);
  const std::string field(text.substr(offset, end - offset));
  throw ConfigError("{}:{}: unknown field {}; did you mean {}?", name,
                    line_and_column(text, offset), field, nearest(field, fields_of(root, message)));
}

}  // namespace

std::string TextPosition::line() const { return line_of(text, offset); }
std::string TextPosition::line_and_column() const { return ddp::line_and_column(text, offset); }

TextPosition position_of(std::string_view text, pb::TextFormat::ParseLocation at) {
  return {.text = text, .offset = offset_of(text, at.line, at.column)};
}

void read_text_message(const std::string& text, const std::string& name, pb::Message& message,
                       pb::TextFormat::ParseInfoTree& positions) {
  FirstError error;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(&positions);
  pb::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  if (!parser.Parse(&stream, &message)) fail(text, name, error, *message.GetDescriptor());
}

std::string read_text_file(const std::string& path, std::string_view what) {
  // Reading a pipe would block until somebody writes to it.
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::is_fifo(status) || std::filesystem::is_socket(status))
    throw ConfigError("{} '{}' is not a regular file; name the file itself", what, path);
  try {
    return read_file(path);
  } catch (const StorageError& error) {
    throw ConfigError("{}: {}", what, error.what());
  }
}

}  // namespace ddp
