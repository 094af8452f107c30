// Idx files for tests, made byte by byte, and the sentence of the error that reading them gives.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

namespace ddp {

using Bytes = std::vector<std::uint8_t>;

/// Magic number and extents, big-endian.
Bytes idx_header(std::initializer_list<std::uint32_t> extents);
/// `count` images of `height` x `width` pixels, pixel values by counter and never all equal.
Bytes idx_images(std::uint32_t count, std::uint32_t height = 4, std::uint32_t width = 5);
Bytes idx_labels(const std::vector<int>& labels);

/// One gzip member.
Bytes gzip(const Bytes& bytes);
Bytes operator+(Bytes a, const Bytes& b);

void write_bytes(const std::filesystem::path& file, const Bytes& bytes);

/// Runs `action`, which must throw an Error of exit code 3; returns its sentence.
std::string data_error(const std::function<void()>& action);

}  // namespace ddp
