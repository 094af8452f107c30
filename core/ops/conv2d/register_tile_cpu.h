// The inner loop of direct convolution: a tile of sums kept in vector registers while products of a
// broadcast scalar and a vector of neighbouring columns are added. Forward, data gradient and
// filter gradient are the same loop over different strides, so no image is ever unfolded into a
// matrix. Sized so that the sums fill the register file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace ddp::cpu {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
inline constexpr int kTileRows = 14;  // 28 of 32 registers hold sums
inline constexpr const char* kTileName = "direct 14x2 vectors of 64 bytes";
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
inline constexpr int kTileRows = 6;  // 12 of 16
inline constexpr const char* kTileName = "direct 6x2 vectors of 32 bytes";
#else
inline constexpr int kVectorBytes = 16;
inline constexpr int kTileRows = 6;
inline constexpr const char* kTileName = "direct 6x2 vectors of 16 bytes";
#endif
inline constexpr int kTileVectors = 2;

template <class T>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

/// `columns` rounded up to whole vectors: the row length of packed operands, whose padding is zero.
template <class T>
constexpr std::int64_t padded_columns(std::int64_t columns) {
  return (columns + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
}

/// sum[i][j] = Σ_o Σ_k a[o * a_outer + k * a_step + i * a_row] * b[(o * steps + k) * b_step + j], o
/// < outer, k < steps. Then sum += bias[j] and max(sum, 0) where asked for, and y[i * y_row + j] =
/// sum, or += sum. `b` and `bias` are read in whole vectors, `y` is touched in its `columns` only.
template <class T>
struct Tile {
  const T* a;
  std::int64_t a_row, a_step, a_outer;
  const T* b;
  std::int64_t b_step;
  std::int64_t outer, steps;
  T* y;
  std::int64_t y_row;
  std::int64_t columns;  ///< at most kTileVectors vectors
  const T* bias = nullptr;
  bool relu = false;
  bool accumulate = false;
};

template <class T, int Rows, int Vectors>
void compute_tile(const Tile<T>& tile) {
  using Vector [[gnu::vector_size(kVectorBytes)]] = T;
  using Unaligned [[gnu::vector_size(kVectorBytes), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
  constexpr int kWidth = kLanes<T>;
  constexpr std::size_t kPointers = (Rows + 3) / 4;
  Vector sum[std::size_t{Rows}][std::size_t{Vectors}] = {};
  const std::int64_t a_row = tile.a_row;
  const T* b = tile.b;
  for (std::int64_t o = 0; o < tile.outer; ++o) {
    // Four pointers and two strides address 14 rows without running out of scalar registers.
    const T* a[kPointers];
    for (int i = 0; i < Rows; i += 4) a[i / 4] = tile.a + o * tile.a_outer + i * a_row;
    for (std::int64_t k = 0; k < tile.steps; ++k) {
      Vector columns[std::size_t{Vectors}];
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v)
        columns[v] = *reinterpret_cast<const Unaligned*>(b + v * kWidth);
#pragma GCC unroll 14
      for (int i = 0; i < Rows; ++i) {
        const T scalar = a[i / 4][i % 4 * a_row];
#pragma GCC unroll 2
        for (int v = 0; v < Vectors; ++v) sum[i][v] += scalar * columns[v];
      }
#pragma GCC unroll 4
      for (int i = 0; i < Rows; i += 4) a[i / 4] += tile.a_step;
      b += tile.b_step;
    }
  }
#pragma GCC unroll 14
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) {
      Vector value = sum[i][v];
      T* y = tile.y + i * tile.y_row + v * kWidth;
      if (tile.bias != nullptr)
        value += *reinterpret_cast<const Unaligned*>(tile.bias + v * kWidth);
      if (tile.relu) value = value < T{0} ? Vector{} : value;
      if (const std::int64_t width = tile.columns - v * kWidth; width >= kWidth) {
        if (tile.accumulate) value += *reinterpret_cast<const Unaligned*>(y);
        *reinterpret_cast<Unaligned*>(y) = value;
      } else {
        for (std::int64_t j = 0; j < width; ++j)
          y[j] = tile.accumulate ? y[j] + value[j] : value[j];
      }
    }
  }
}

/// Computes a tile of `rows` <= kTileRows rows.
template <class T>
void compute_tile(int rows, const Tile<T>& tile) {
  using Function = void (*)(const Tile<T>&);
  static constexpr auto kFunctions = []<int... I>(std::integer_sequence<int, I...>) {
    return std::array<std::array<Function, kTileVectors>, kTileRows>{
        {{compute_tile<T, I + 1, 1>, compute_tile<T, I + 1, 2>}...}};
  }
  (std::make_integer_sequence<int, kTileRows>{});
  const auto vectors = static_cast<std::size_t>((tile.columns + kLanes<T> - 1) / kLanes<T>);
  kFunctions[static_cast<std::size_t>(rows - 1)][vectors - 1](tile);
}

}  // namespace ddp::cpu
