#include <algorithm>
#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/base/file.h"
#include "core/checkpoint/safetensors.h"

namespace ddp {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are written as they are in memory");

constexpr const char* kMetadataKey = "__metadata__";

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Length and JSON, padded with spaces so that the tensors start at a multiple of 8.
std::string header_bytes(const SafetensorsMetadata& metadata,
                         std::span<const FileTensor* const> tensors) {
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  if (!metadata.empty()) root[kMetadataKey] = metadata;
  std::size_t offset = 0;
  for (const FileTensor* tensor : tensors) {
    DDP_CHECK(tensor->name != kMetadataKey, "a tensor cannot be named {}", kMetadataKey);
    DDP_CHECK(!root.contains(tensor->name), "two tensors of a weight file are named '{}'",
              tensor->name);
    DDP_CHECK(tensor->bytes.size() == tensor->type.bytes(), "tensor '{}' has {} bytes, its type {}",
              tensor->name, tensor->bytes.size(), tensor->type.bytes());
    const std::size_t end = offset + tensor->bytes.size();
    root[tensor->name] = {{"dtype", name_of(tensor->type.dtype)},
                          {"shape", tensor->type.shape.extents()},
                          {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string json = root.dump();
  json.append((8 - json.size() % 8) % 8, ' ');
  const auto length = std::bit_cast<std::array<char, 8>>(std::uint64_t{json.size()});
  return std::string(length.data(), length.size()) + json;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const SafetensorsMetadata& metadata,
                       std::span<const FileTensor> tensors) {
  std::vector<const FileTensor*> ordered;
  for (const FileTensor& tensor : tensors) ordered.push_back(&tensor);
  std::ranges::sort(ordered, [](const FileTensor* a, const FileTensor* b) {
    return std::tuple(size_of(b->type.dtype), std::string_view(a->name)) <
           std::tuple(size_of(a->type.dtype), std::string_view(b->name));
  });

  const std::string header = header_bytes(metadata, ordered);
  std::vector<std::string_view> parts{header};
  for (const FileTensor* tensor : ordered) parts.push_back(as_text(tensor->bytes));
  write_file_atomically(path, parts);
}

}  // namespace ddp
