#include <algorithm>
#include <utility>

#include "core/base/file.h"
#include "core/checkpoint/safetensors_header.h"

namespace ddp {
namespace {

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the format's limit

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::string describe(const TensorType& type) {
  return fmt::format("{} {}", name_of(type.dtype), type.shape.to_string());
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : SafetensorsFile(path.string(), read_file(path)) {}

SafetensorsFile::SafetensorsFile(std::string name, std::string file_content)
    : name_(std::move(name)), content_(std::move(file_content)) {
  const std::string_view content = content_;
  if (content.size() < 8)
    throw malformed_file(name_, "{} bytes are too few for a safetensors file", content.size());
  const std::uint64_t length = little_endian(content.substr(0, 8));
  if (length > kMaxHeader)
    throw malformed_file(name_, "the header length at offset 0 is {}, more than the {} allowed",
                         length, kMaxHeader);
  if (length > content.size() - 8)
    throw malformed_file(name_, "the header ends at offset {}, but the file has only {} bytes",
                         8 + length, content.size());

  const std::string_view header = content.substr(8, length);
  const std::string_view buffer = content.substr(8 + length);
  SafetensorsHeader parsed = parse_safetensors_header(name_, header, buffer.size());
  metadata_ = std::move(parsed.metadata);
  for (auto& entry : parsed.entries)
    tensors_.push_back(
        {std::move(entry.name), entry.type,
         std::as_bytes(std::span(buffer)).subspan(entry.begin, entry.end - entry.begin)});
}

const std::string& SafetensorsFile::metadata(const std::string& key) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end())
    throw StorageError("{}: its metadata has no '{}'; use a file that ddptrain wrote", name_, key);
  return found->second;
}

const FileTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors_, name, &FileTensor::name);
  return found == tensors_.end() ? nullptr : &*found;
}

const FileTensor& SafetensorsFile::tensor(std::string_view name, const TensorType& type) const {
  const FileTensor* found = find(name);
  if (found == nullptr)
    throw StorageError("{}: there is no tensor '{}', which the model needs ({})", name_, name,
                       describe(type));
  if (found->type != type)
    throw StorageError("{}: tensor '{}' is {}, the model needs {}", name_, name,
                       describe(found->type), describe(type));
  return *found;
}

}  // namespace ddp
