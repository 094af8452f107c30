#include "core/checkpoint/safetensors_header.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace ddp {
namespace {

using nlohmann::json;

constexpr std::size_t kHeaderStart = 8;
constexpr std::array kSupported{DType::kF32, DType::kF64, DType::kBF16,
                                DType::kU8,  DType::kI32, DType::kI64};

/// JSON whose objects name no key twice; the library alone would keep the last one.
json parse_json(std::string_view file, std::string_view header) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const json::parser_callback_t check = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      throw malformed_file(file, "its header names '{}' twice", parsed.get<std::string>());
    return true;
  };
  // The library would stop at a zero byte and never see what stands behind it.
  if (const std::size_t zero = header.find('\0'); zero != std::string_view::npos)
    throw malformed_file(file, "its header is not valid JSON at offset {}", kHeaderStart + zero);
  try {
    return json::parse(header, check);
  } catch (const json::parse_error& error) {
    throw malformed_file(file, "its header is not valid JSON at offset {}",
                         kHeaderStart + (error.byte > 0 ? error.byte - 1 : 0));
  }
}

SafetensorsMetadata parse_metadata(std::string_view file, const json& object) {
  if (!object.is_object()) throw malformed_file(file, "__metadata__ is not an object");
  SafetensorsMetadata metadata;
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string()) throw malformed_file(file, "metadata value '{}' is not text", key);
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

/// Checks and converts the description of one tensor.
class EntryParser {
 public:
  EntryParser(std::string_view file, const std::string& name, const json& object,
              std::size_t buffer_start)
      : file_(file), name_(name), object_(object), buffer_start_(buffer_start) {}

  SafetensorsHeader::Entry parse() const {
    if (!object_.is_object() || object_.size() != 3) throw shape_of_entry();
    const auto [begin, end] = offsets();
    const SafetensorsHeader::Entry entry{name_, {shape(), dtype()}, begin, end};
    const std::optional<std::size_t> bytes = size(entry.type);
    if (!bytes)
      throw malformed("its shape {} overflows the address space", entry.type.shape.to_string());
    if (*bytes != end - begin)
      throw malformed("{} bytes at offset {} where {} {} needs {}", end - begin,
                      buffer_start_ + begin, name_of(entry.type.dtype),
                      entry.type.shape.to_string(), *bytes);
    return entry;
  }

 private:
  template <class... Args>
  StorageError malformed(fmt::format_string<Args...> format, Args&&... args) const {
    return malformed_file(file_, "tensor '{}': {}", name_,
                          fmt::format(format, std::forward<Args>(args)...));
  }
  StorageError shape_of_entry() const {
    return malformed("its description is not exactly dtype, shape and data_offsets");
  }

  const json& field(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) throw shape_of_entry();
    return *found;
  }

  DType dtype() const {
    const json& value = field("dtype");
    if (!value.is_string()) throw malformed("its dtype is not text");
    const auto& text = value.get_ref<const std::string&>();
    for (const DType dtype : kSupported)
      if (name_of(dtype) == text) return dtype;
    throw StorageError("{}: tensor '{}' has dtype {}, which is not supported; convert it to F32",
                       file_, name_, text);
  }

  Shape shape() const {
    const json& value = field("shape");
    if (!value.is_array()) throw malformed("its shape is not a list");
    if (value.size() > Shape::kMaxRank)
      throw StorageError("{}: tensor '{}' has {} dimensions, at most {} are supported", file_,
                         name_, value.size(), Shape::kMaxRank);
    std::vector<std::int64_t> extents;
    for (const json& extent : value) {
      if (!extent.is_number_unsigned() || !std::in_range<std::int64_t>(extent.get<std::uint64_t>()))
        throw malformed("its shape holds {}, which is no extent", extent.dump());
      extents.push_back(extent.get<std::int64_t>());
    }
    return Shape(extents);
  }

  std::pair<std::size_t, std::size_t> offsets() const {
    const json& value = field("data_offsets");
    if (!value.is_array() || value.size() != 2 || !value[0].is_number_unsigned() ||
        !value[1].is_number_unsigned())
      throw malformed("its data_offsets are not two offsets");
    const auto begin = value[0].get<std::size_t>(), end = value[1].get<std::size_t>();
    if (begin > end) throw malformed("its data_offsets {} and {} are out of order", begin, end);
    return {begin, end};
  }

  /// Bytes of a tensor, or nothing when the number overflows (an extent of zero later on does not
  /// help).
  static std::optional<std::size_t> size(const TensorType& type) {
    std::size_t bytes = size_of(type.dtype);
    for (const std::int64_t extent : type.shape.extents())
      if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(extent), &bytes)) return {};
    return std::in_range<std::int64_t>(bytes) ? std::optional(bytes) : std::nullopt;
  }

  std::string_view file_;
  const std::string& name_;
  const json& object_;
  std::size_t buffer_start_;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view file, std::string_view header,
                                           std::size_t buffer_bytes) {
  if (header.empty() || header[0] != '{')
    throw malformed_file(file, "its header at offset {} does not start with '{{'", kHeaderStart);
  const json root = parse_json(file, header);

  const std::size_t buffer_start = kHeaderStart + header.size();
  SafetensorsHeader result;
  for (const auto& [name, value] : root.items()) {
    if (name == "__metadata__")
      result.metadata = parse_metadata(file, value);
    else
      result.entries.push_back(EntryParser(file, name, value, buffer_start).parse());
  }
  std::ranges::sort(result.entries, {},
                    [](const auto& entry) { return std::tie(entry.begin, entry.end, entry.name); });

  std::size_t end = 0;
  for (const auto& entry : result.entries) {
    if (entry.begin != end)
      throw malformed_file(
          file, "tensor '{}' starts at offset {}, {} the end of the one before it, {}", entry.name,
          buffer_start + entry.begin, entry.begin < end ? "before" : "behind", buffer_start + end);
    end = entry.end;
    if (end > buffer_bytes)
      throw malformed_file(file, "tensor '{}' ends at offset {}, but the file has only {} bytes",
                           entry.name, buffer_start + end, buffer_start + buffer_bytes);
  }
  if (end != buffer_bytes)
    throw malformed_file(file, "{} bytes at offset {} belong to no tensor", buffer_bytes - end,
                         buffer_start + end);
  return result;
}

}  // namespace ddp
