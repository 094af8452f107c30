#include <algorithm>
#include <array>

#include "core/backend/cpu/parallel.h"
#include "core/graph/op_definition.h"
#include "core/ops/rows.h"

namespace ddp {
namespace {

template <class T>
Kernel forward(RowExtents x_extents, int threads) {
  return {.run = [=](const KernelArgs& args) {
    const auto [rows, channels] = x_extents;
    const T* x = args.inputs[0].as<T>();
    const T* b = args.inputs[1].as<T>();
    T* y = args.outputs[0].as<T>();
    cpu::parallel_for(threads, rows,
                      [=, channels = channels](std::int64_t begin, std::int64_t end, int) {
                        for (std::int64_t i = begin; i < end; ++i)
                          for (std::int64_t c = 0; c < channels; ++c)
                            y[i * channels + c] = x[i * channels + c] + b[c];
                      });
  }};
}

// Sums are taken over blocks of rows first, then over blocks: the rounding error grows with the
// block and with the number of blocks, not with the number of rows. A block of both operands stays
// in the first-level cache while all its column groups are summed, each in registers.
constexpr std::int64_t kBlockRows = 64;
constexpr std::int64_t kGroup = 32;

/// sum[j] += Σ_rows dy[row, j] for `columns` <= kGroup columns; with Masked, dy counts only where y
/// > 0, and that is what dz gets.
template <class T, bool Masked>
void sum_group(std::int64_t rows, std::int64_t channels, std::int64_t columns, const T* dy,
               const T* y, T* dz, T* sum) {
  std::array<T, kGroup> block{};
  const auto add_row = [&](std::int64_t i, std::int64_t width) {
    for (std::int64_t j = 0; j < width; ++j) {
      T value = dy[i * channels + j];
      if constexpr (Masked) {
        value = y[i * channels + j] <= T{0} ? T{0} : value;
        dz[i * channels + j] = value;
      }
      block[static_cast<std::size_t>(j)] += value;
    }
  };
  if (columns == kGroup)  // a constant width lets the compiler keep the sums in registers
    for (std::int64_t i = 0; i < rows; ++i) add_row(i, kGroup);
  else
    for (std::int64_t i = 0; i < rows; ++i) add_row(i, columns);
  for (std::int64_t j = 0; j < columns; ++j) sum[j] += block[static_cast<std::size_t>(j)];
}

/// db, and with Masked also dz. Each thread sums its rows in the workspace; then threads are added
/// in their order.
template <class T, bool Masked>
Kernel backward(RowExtents dy_extents, int threads) {
  const auto parts = std::min<std::int64_t>(threads, dy_extents.rows);
  const auto run = [=](const KernelArgs& args) {
    const auto [rows, channels] = dy_extents;
    const T* dy = args.inputs[0].as<T>();
    const T* y = Masked ? args.inputs[1].as<T>() : nullptr;
    T* dz = Masked ? args.outputs[0].as<T>() : nullptr;
    T* db = args.outputs[Masked ? 1 : 0].as<T>();
    T* sums = reinterpret_cast<T*>(args.workspace.data());
    cpu::parallel_for(
        threads, rows, [=, channels = channels](std::int64_t begin, std::int64_t end, int thread) {
          T* sum = sums + thread * channels;
          std::fill_n(sum, channels, T{0});
          for (std::int64_t row = begin; row < end; row += kBlockRows)
            for (std::int64_t c = 0; c < channels; c += kGroup) {
              const std::int64_t at = row * channels + c;
              sum_group<T, Masked>(std::min(kBlockRows, end - row), channels,
                                   std::min(kGroup, channels - c), dy + at,
                                   Masked ? y + at : nullptr, Masked ? dz + at : nullptr, sum + c);
            }
        });
    for (std::int64_t c = 0; c < channels; ++c) {
      db[c] = sums[c];
      for (std::int64_t part = 1; part < parts; ++part) db[c] += sums[part * channels + c];
    }
  };
  return {.run = run,
          .workspace_bytes = static_cast<std::size_t>(parts * dy_extents.columns) * sizeof(T)};
}

Kernel bias_factory(const OpSignature& s, const KernelContext& context) {
  const RowExtents x = row_extents(s.inputs[0]);
  return s.inputs[0].dtype == DType::kF64 ? forward<double>(x, context.threads)
                                          : forward<float>(x, context.threads);
}
DDP_REGISTER_CPU_KERNEL("bias", bias_factory);

template <bool Masked>
Kernel backward_factory(const OpSignature& s, const KernelContext& context) {
  const RowExtents dy = row_extents(s.inputs[0]);
  return s.inputs[0].dtype == DType::kF64 ? backward<double, Masked>(dy, context.threads)
                                          : backward<float, Masked>(dy, context.threads);
}
constexpr KernelFactory bias_backward_factory = backward_factory<false>;
constexpr KernelFactory bias_relu_backward_factory = backward_factory<true>;
DDP_REGISTER_CPU_KERNEL("bias_backward", bias_backward_factory);
DDP_REGISTER_CPU_KERNEL("bias_relu_backward", bias_relu_backward_factory);

}  // namespace
}  // namespace ddp
