// What the three products of a convolution share on the CPU: padding one image, packing filters for
// the register tile, and the correlation of one padded image with packed filters. All of it works
// inside memory the caller provides.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/backend/cpu/parallel.h"
#include "core/ops/conv2d/conv2d.h"
#include "core/ops/conv2d/register_tile_cpu.h"

namespace ddp::cpu {

/// An image [image_rows, image_columns, channels] seen through a window [rows, columns,
/// padded_channels], whose pixel (i, j) is pixel (i - margin, j - margin) of the image and zero
/// outside of it.
struct Window {
  std::int64_t image_rows, image_columns, channels;
  std::int64_t margin;  ///< negative: the window starts inside the image
  std::int64_t rows, columns, padded_channels;

  /// False when the image itself can be read, since the window adds nothing to it.
  bool is_copy() const {
    return margin != 0 || rows > image_rows || columns > image_columns ||
           padded_channels != channels;
  }
  /// Elements of scratch memory for one window.
  std::int64_t scratch() const { return is_copy() ? rows * columns * padded_channels : 0; }
  /// Elements between rows of what open_window returns.
  std::int64_t row_stride() const {
    return (is_copy() ? columns : image_columns) * padded_channels;
  }
};

/// One image of a convolution with its padding around it.
inline Window padded_image(const Conv2dGeometry& g) {
  return {.image_rows = g.h,
          .image_columns = g.w,
          .channels = g.c,
          .margin = g.pad,
          .rows = g.h + 2 * g.pad,
          .columns = g.w + 2 * g.pad,
          .padded_channels = g.c};
}

/// The window onto `image`: the image itself, or a copy in `scratch`.
template <class T>
const T* open_window(const Window& window, const T* image, T* scratch) {
  if (!window.is_copy()) return image;
  const std::int64_t first = std::clamp<std::int64_t>(window.margin, 0, window.columns);
  const std::int64_t last =
      std::clamp<std::int64_t>(window.margin + window.image_columns, first, window.columns);
  for (std::int64_t i = 0; i < window.rows; ++i) {
    T* row = scratch + i * window.row_stride();
    const std::int64_t source = i - window.margin;
    if (source < 0 || source >= window.image_rows) {
      std::fill_n(row, window.row_stride(), T{0});
      continue;
    }
    const T* pixels =
        image + (source * window.image_columns + first - window.margin) * window.channels;
    std::fill(row, row + first * window.padded_channels, T{0});
    if (window.padded_channels == window.channels) {
      std::copy(pixels, pixels + (last - first) * window.channels, row + first * window.channels);
    } else {
      for (std::int64_t j = first; j < last; ++j, pixels += window.channels) {
        T* pixel = row + j * window.padded_channels;
        std::fill(std::copy(pixels, pixels + window.channels, pixel),
                  pixel + window.padded_channels, T{0});
      }
    }
    std::fill(row + last * window.padded_channels, row + window.row_stride(), T{0});
  }
  return scratch;
}

/// Columns of a tile: packed filters stand in blocks [terms][kTileColumns], the last one filled up
/// with zeros.
template <class T>
inline constexpr std::int64_t kTileColumns = kTileVectors* kLanes<T>;

template <class T>
constexpr std::int64_t column_blocks(std::int64_t columns) {
  return (columns + kTileColumns<T> - 1) / kTileColumns<T>;
}
template <class T>
constexpr std::int64_t packed_elements(std::int64_t terms, std::int64_t columns) {
  return column_blocks<T>(columns) * terms * kTileColumns<T>;
}

/// Number of tiles of at most kTileRows rows that cover `rows`; they differ by at most one row
/// (part_begin).
constexpr std::int64_t row_tiles(std::int64_t rows) { return (rows + kTileRows - 1) / kTileRows; }

/// One image correlated with packed filters:
/// y[i,j,k] = Σ_{r,t} window[(i*stride + r) * row + j*stride*pixel + t] * filters[r, t, k], t <
/// run; then bias and relu.
template <class T>
struct Correlation {
  const T* window;
  std::int64_t row, pixel, stride;
  const T* filters;  ///< packed, filter_rows * run terms
  std::int64_t filter_rows, run;
  T* y;
  std::int64_t y_row, y_pixel;
  std::int64_t rows, columns, channels;  ///< of y
  const T* bias = nullptr;               ///< whole column blocks
  bool relu = false;
};

template <class T>
void correlate(const Correlation<T>& c) {
  const std::int64_t tiles = row_tiles(c.columns);
  for (std::int64_t block = 0; block < column_blocks<T>(c.channels); ++block) {
    const std::int64_t k = block * kTileColumns<T>;
    for (std::int64_t i = 0; i < c.rows; ++i) {
      for (std::int64_t tile = 0; tile < tiles; ++tile) {
        const std::int64_t j = part_begin(c.columns, tiles, tile);
        const std::int64_t end = part_begin(c.columns, tiles, tile + 1);
        compute_tile<T>(static_cast<int>(end - j),
                        {.a = c.window + i * c.stride * c.row + j * c.stride * c.pixel,
                         .a_row = c.stride * c.pixel,
                         .a_step = 1,
                         .a_outer = c.row,
                         .b = c.filters + k * c.filter_rows * c.run,
                         .b_step = kTileColumns<T>,
                         .outer = c.filter_rows,
                         .steps = c.run,
                         .y = c.y + i * c.y_row + j * c.y_pixel + k,
                         .y_row = c.y_pixel,
                         .columns = std::min(c.channels - k, kTileColumns<T>),
                         .bias = c.bias == nullptr ? nullptr : c.bias + k,
                         .relu = c.relu});
      }
    }
  }
}

}  // namespace ddp::cpu
