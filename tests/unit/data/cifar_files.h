// CIFAR files for tests, made byte by byte: images are told apart by a number, and every one of
// their bytes is a function of that number, channel and pixel.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/unit/data/idx_files.h"

namespace ddp {

constexpr std::size_t kCifarPixels = 32 * 32;
constexpr std::size_t kCifarImage = 3 * kCifarPixels;

/// Byte of image `number`.
std::uint8_t cifar_byte(int number, std::size_t channel, std::size_t pixel);
/// Image `number` as files hold it, plane after plane, and as memory does, pixel after pixel.
Bytes cifar_planes(int number);
Bytes cifar_channels_last(int number);

/// A record for each label: images `first`, `first` + 1, …
Bytes cifar10_records(const std::vector<int>& labels, int first);
/// The same with a coarse label before each label: label / 5.
Bytes cifar100_records(const std::vector<int>& labels, int first);

/// All files of a set in `directory`, which is made. CIFAR-10: two samples in each of five training
/// files, labels 0..9 in file order, images 0..9; validation labels 9, 0, 4, images 100..102; names
/// "name 0".."name 9". CIFAR-100: training labels 0..99, images 0..99; validation labels 99, 7,
/// images 200, 201; names alike.
void write_cifar10(const std::filesystem::path& directory);
void write_cifar100(const std::filesystem::path& directory);

}  // namespace ddp
