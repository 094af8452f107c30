#include "launcher/weights.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "core/base/text.h"
#include "core/tensor/bfloat16.h"

namespace ddp {
namespace {

std::string joined(const std::vector<double>& numbers) {
  std::string text;
  for (const double number : numbers) {
    if (!text.empty()) text += ',';
    append_number(text, number);
  }
  return text;
}

/// Numbers between commas; StorageError when the text holds anything else.
template <class T>
std::vector<T> numbers_in(const std::string& text, std::string_view key,
                          const std::filesystem::path& path) {
  std::vector<T> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    T number{};
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc{} || (next != end && *next != ','))
      throw StorageError(
          "{}: metadata '{}' is \"{}\", not numbers between commas; was the file written by "
          "ddptrain?",
          path.string(), key, text);
    numbers.push_back(number);
    if (next == end) return numbers;
    at = next + 1;
  }
}

/// Whether pixels can be normalised with them.
bool usable(const std::vector<double>& mean, const std::vector<double>& stddev) {
  return std::ranges::all_of(mean, [](double x) { return std::isfinite(x); }) &&
         std::ranges::all_of(stddev, [](double x) { return std::isfinite(x) && x > 0; });
}

template <class T>
bool all_finite(std::span<const std::byte> bytes) {
  for (; !bytes.empty(); bytes = bytes.subspan(sizeof(T))) {
    T number;  // at any alignment
    std::memcpy(&number, bytes.data(), sizeof(T));
    if (!std::isfinite(static_cast<double>(number))) return false;
  }
  return true;
}

bool all_finite(const FileTensor& tensor) {
  switch (tensor.type.dtype) {
    case DType::kF64: return all_finite<double>(tensor.bytes);
    case DType::kF32: return all_finite<float>(tensor.bytes);
    case DType::kBF16: return all_finite<BFloat16>(tensor.bytes);
    default: return true;
  }
}

}  // namespace

void save_weights(const std::filesystem::path& path, const WeightsInfo& info,
                  const Program& program, Backend& backend, const MemoryMap& memory) {
  const std::vector<NamedTensor> tensors = export_parameters(program, backend, memory);
  std::vector<FileTensor> in_file;
  for (const NamedTensor& tensor : tensors)
    in_file.push_back({.name = tensor.name, .type = tensor.type, .bytes = tensor.bytes});
  const Shape& image = info.data.image;
  SafetensorsMetadata metadata{{"format", "pt"},
                               {"model", info.model},
                               {"classes", std::to_string(info.data.classes)},
                               {"input", fmt::format("{},{},{}", image[2], image[0], image[1])},
                               {"mean", joined(info.data.mean)},
                               {"std", joined(info.data.stddev)}};
  if (info.stem != "auto") metadata["stem"] = info.stem;
  if (!info.model_text.empty()) metadata["model_text"] = info.model_text;
  write_safetensors(path, metadata, in_file);
}

WeightsInfo weights_info(const SafetensorsFile& file, const std::filesystem::path& path) {
  const auto input = numbers_in<std::int64_t>(file.metadata("input"), "input", path);
  const auto classes = numbers_in<int>(file.metadata("classes"), "classes", path);
  WeightsInfo info{.model = file.metadata("model"), .data = {}};
  const auto read_if_there = [&](const std::string& key, std::string& into) {
    if (const auto found = file.metadata().find(key); found != file.metadata().end())
      into = found->second;
  };
  read_if_there("stem", info.stem);
  read_if_there("model_text", info.model_text);
  info.data.mean = numbers_in<double>(file.metadata("mean"), "mean", path);
  info.data.stddev = numbers_in<double>(file.metadata("std"), "std", path);
  if (input.size() != 3 || input[0] < 1 || input[1] < 1 || input[2] < 1 || classes.size() != 1 ||
      classes[0] < 2 || info.data.mean.size() != static_cast<std::size_t>(input[0]) ||
      info.data.stddev.size() != info.data.mean.size() || !usable(info.data.mean, info.data.stddev))
    throw StorageError(
        "{}: the metadata (input \"{}\", classes \"{}\", mean, std) does not describe an input; "
        "was the "
        "file written by ddptrain?",
        path.string(), file.metadata("input"), file.metadata("classes"));
  info.data.image = Shape{input[1], input[2], input[0]};
  info.data.classes = classes[0];
  return info;
}

std::string first_not_finite(const SafetensorsFile& file) {
  const auto found = std::ranges::find_if_not(
      file.tensors(), [](const FileTensor& tensor) { return all_finite(tensor); });
  return found == file.tensors().end() ? "" : found->name;
}

}  // namespace ddp
