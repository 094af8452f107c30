// Weight files in the safetensors format (https://github.com/huggingface/safetensors, "Format").
// Equal content gives equal bytes, a file is complete or absent, and the reader accepts nothing
// that the format does not allow: header and tensors fill the file without hole or overlap. Used
// for final and best weights and by `eval`.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"

namespace ddp {

using SafetensorsMetadata = std::map<std::string, std::string>;

/// One tensor of a file; does not own its bytes: dense, row-major, little-endian, at any alignment.
struct FileTensor {
  std::string name;
  TensorType type;
  std::span<const std::byte> bytes;
};

/// Writes a file atomically (StorageError, exit 7), tensors by falling element size, then by name,
/// whatever their order here. Names are unique; give each tied tensor once. Metadata should hold
/// {"format", "pt"}, which some loaders want.
void write_safetensors(const std::filesystem::path& path, const SafetensorsMetadata& metadata,
                       std::span<const FileTensor> tensors);

/// The content of one file, read into memory and checked when it is opened.
class SafetensorsFile {
 public:
  /// StorageError (exit 7) names the file, the tensor and the offset of whatever is malformed or
  /// not supported.
  explicit SafetensorsFile(const std::filesystem::path& path);
  /// The same for content that is in memory already; `name` stands for the file in errors.
  SafetensorsFile(std::string name, std::string content);
  SafetensorsFile(SafetensorsFile&&) = delete;  // tensors point into content_

  const SafetensorsMetadata& metadata() const { return metadata_; }
  /// The metadata value `key`; StorageError when there is none.
  const std::string& metadata(const std::string& key) const;
  /// In the order of their bytes in the file.
  const std::vector<FileTensor>& tensors() const { return tensors_; }
  /// The tensor `name`, or null.
  const FileTensor* find(std::string_view name) const;
  /// The tensor `name`, which must be of `type`; otherwise a StorageError with both types.
  const FileTensor& tensor(std::string_view name, const TensorType& type) const;

 private:
  std::string name_;
  std::string content_;
  SafetensorsMetadata metadata_;
  std::vector<FileTensor> tensors_;
};

}  // namespace ddp
