// Data gradient: dx[h] = Σ_r dy[(h + pad - r) / stride] w[r] over those r for which the division is
// exact. Rows h of dx with the same residue a = (h + pad) mod stride use the same filter rows r =
// a, a + stride, …; so dx falls into stride x stride interleaved images, each of which is an
// ordinary correlation of dy with a part of the flipped filters, summed over K. With stride 1 there
// is one of them.
#include <vector>

#include "core/ops/conv2d/conv2d.h"
#include "core/ops/conv2d/correlate_cpu.h"

namespace ddp {
namespace {

using namespace cpu;

/// Rows (or columns) of dx with one residue, and the filter rows they use.
struct Residue {
  std::int64_t value;  ///< first filter row
  std::int64_t taps;   ///< filter rows; 0 when the stride is larger than the kernel
  std::int64_t begin;  ///< first row of dx
  std::int64_t first;  ///< row of dy that the last filter row meets there; may lie outside of dy
  /// Rows of dx, which has `extent` rows.
  std::int64_t count(std::int64_t extent, std::int64_t stride) const {
    return begin < extent ? (extent - 1 - begin) / stride + 1 : 0;
  }
};

std::vector<Residue> residues_of(const Conv2dGeometry& g) {
  std::vector<Residue> residues;
  for (std::int64_t a = 0; a < g.stride; ++a) {
    const std::int64_t taps = a < g.r ? (g.r - a + g.stride - 1) / g.stride : 0;
    const std::int64_t begin = (a - g.pad % g.stride + g.stride) % g.stride;
    residues.push_back({.value = a,
                        .taps = taps,
                        .begin = begin,
                        .first = taps == 0 ? 0 : (begin + g.pad) / g.stride - (taps - 1)});
  }
  return residues;
}

Window window_of(const Conv2dGeometry& g, const std::vector<Residue>& residues) {
  std::int64_t margin = -residues[0].first, rows = 0, columns = 0;
  for (const Residue& a : residues)
    if (a.taps > 0) margin = std::max(margin, -a.first);
  for (const Residue& a : residues) {
    rows = std::max(rows, margin + a.first + a.count(g.h, g.stride) + a.taps - 1);
    columns = std::max(columns, margin + a.first + a.count(g.w, g.stride) + a.taps - 1);
  }
  return {.image_rows = g.p,
          .image_columns = g.q,
          .channels = g.k,
          .margin = margin,
          .rows = rows,
          .columns = columns,
          .padded_channels = g.k};
}

/// One of the interleaved images.
struct Part {
  Residue row, column;
  std::int64_t filters;  ///< offset of its packed filters
};

/// packed[block][t, u, k][j] = w[k, r, s, c] flipped: the last of the part's filter rows comes
/// first.
template <class T>
void pack_part(const Conv2dGeometry& g, const Part& part, std::int64_t block, const T* w,
               T* packed) {
  T* row = packed + block * part.row.taps * part.column.taps * g.k * kTileColumns<T>;
  const std::int64_t c = block * kTileColumns<T>;
  const std::int64_t columns = std::min(g.c - c, kTileColumns<T>);
  for (std::int64_t t = part.row.taps; t-- > 0;)
    for (std::int64_t u = part.column.taps; u-- > 0;)
      for (std::int64_t k = 0; k < g.k; ++k, row += kTileColumns<T>) {
        const std::int64_t r = part.row.value + t * g.stride, s = part.column.value + u * g.stride;
        const T* channels = w + ((k * g.r + r) * g.s + s) * g.c + c;
        std::fill(std::copy(channels, channels + columns, row), row + kTileColumns<T>, T{0});
      }
}

template <class T>
Kernel backward_data(const Conv2dGeometry& g, int threads) {
  const std::vector<Residue> residues = residues_of(g);
  const Window window = window_of(g, residues);
  std::vector<Part> parts;
  std::int64_t packed = 0;
  for (const Residue& row : residues)
    for (const Residue& column : residues) {
      parts.push_back({row, column, packed});
      packed += packed_elements<T>(row.taps * column.taps * g.k, g.c);
    }
  const auto run = [=](const KernelArgs& args) {
    const T* w = args.inputs[0].as<T>();
    const T* dy = args.inputs[1].as<T>();
    T* dx = args.outputs[0].as<T>();
    T* filters = reinterpret_cast<T*>(args.workspace.data());
    T* scratch = filters + packed;

    parallel_for(threads, column_blocks<T>(g.c), [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t block = begin; block < end; ++block)
        for (const Part& part : parts) pack_part(g, part, block, w, filters + part.filters);
    });
    parallel_for(threads, g.n, [&](std::int64_t begin, std::int64_t end, int thread) {
      for (std::int64_t n = begin; n < end; ++n) {
        const T* gradients =
            open_window(window, dy + n * g.p * g.q * g.k, scratch + thread * window.scratch());
        for (const auto& [row, column, offset] : parts)
          correlate<T>({.window = gradients + (row.first + window.margin) * window.row_stride() +
                                  (column.first + window.margin) * g.k,
                        .row = window.row_stride(),
                        .pixel = g.k,
                        .stride = 1,
                        .filters = filters + offset,
                        .filter_rows = row.taps,
                        .run = column.taps * g.k,
                        .y = dx + ((n * g.h + row.begin) * g.w + column.begin) * g.c,
                        .y_row = g.stride * g.w * g.c,
                        .y_pixel = g.stride * g.c,
                        .rows = row.count(g.h, g.stride),
                        .columns = column.count(g.w, g.stride),
                        .channels = g.c});
      }
    });
  };
  const std::int64_t workspace = packed + threads * window.scratch();
  return {.run = run,
          .workspace_bytes = static_cast<std::size_t>(workspace) * sizeof(T),
          .algorithm = kTileName};
}

Kernel backward_data_factory(const OpSignature& s, const KernelContext& context) {
  const Conv2dGeometry g = conv2d_backward_data_geometry(s);
  return s.inputs[0].dtype == DType::kF64 ? backward_data<double>(g, context.threads)
                                          : backward_data<float>(g, context.threads);
}
DDP_REGISTER_CPU_KERNEL("conv2d_backward_data", backward_data_factory);

}  // namespace
}  // namespace ddp
