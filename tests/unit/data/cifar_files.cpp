#include "tests/unit/data/cifar_files.h"

#include <fmt/format.h>

#include <numeric>

namespace ddp {

namespace {

Bytes class_names(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("name {}\n", i);
  return {text.begin(), text.end()};
}

}  // namespace

std::uint8_t cifar_byte(int number, std::size_t channel, std::size_t pixel) {
  const std::size_t counter =
      static_cast<std::size_t>(number) * kCifarImage + channel * kCifarPixels + pixel;
  return static_cast<std::uint8_t>((counter * 2654435761U) >> 16);
}

Bytes cifar_planes(int number) {
  Bytes bytes;
  for (std::size_t channel = 0; channel < 3; ++channel)
    for (std::size_t pixel = 0; pixel < kCifarPixels; ++pixel)
      bytes.push_back(cifar_byte(number, channel, pixel));
  return bytes;
}

Bytes cifar_channels_last(int number) {
  Bytes bytes;
  for (std::size_t pixel = 0; pixel < kCifarPixels; ++pixel)
    for (std::size_t channel = 0; channel < 3; ++channel)
      bytes.push_back(cifar_byte(number, channel, pixel));
  return bytes;
}

Bytes cifar10_records(const std::vector<int>& labels, int first) {
  Bytes bytes;
  for (const int label : labels)
    bytes = std::move(bytes) + Bytes{static_cast<std::uint8_t>(label)} + cifar_planes(first++);
  return bytes;
}

Bytes cifar100_records(const std::vector<int>& labels, int first) {
  Bytes bytes;
  for (const int label : labels)
    bytes = std::move(bytes) +
            Bytes{static_cast<std::uint8_t>(label / 5), static_cast<std::uint8_t>(label)} +
            cifar_planes(first++);
  return bytes;
}

void write_cifar10(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  for (int file = 0; file < 5; ++file)
    write_bytes(directory / fmt::format("data_batch_{}.bin", file + 1),
                cifar10_records({2 * file, 2 * file + 1}, 2 * file));
  write_bytes(directory / "test_batch.bin", cifar10_records({9, 0, 4}, 100));
  write_bytes(directory / "batches.meta.txt", class_names(10) + Bytes{'\n'});
}

void write_cifar100(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  std::vector<int> labels(100);
  std::iota(labels.begin(), labels.end(), 0);
  write_bytes(directory / "train.bin", cifar100_records(labels, 0));
  write_bytes(directory / "test.bin", cifar100_records({99, 7}, 200));
  write_bytes(directory / "fine_label_names.txt", class_names(100));
}

}  // namespace ddp
