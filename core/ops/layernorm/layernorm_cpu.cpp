// Memory is read and written once: a row stays in the first-level cache between its passes. All
// sums are taken in double; the variance is that of differences from the mean, so that a large mean
// does not eat it.
#include <algorithm>
#include <cmath>

#include "core/backend/cpu/parallel.h"
#include "core/backend/cpu/reduce.h"
#include "core/graph/op_definition.h"
#include "core/ops/rows.h"

namespace ddp {
namespace {

template <class T>
struct RowStatistics {
  T mean, inverse;  ///< inverse: 1 / sqrt(variance + eps)
};

template <class T>
RowStatistics<T> statistics_of(const T* x, std::int64_t columns, double eps) {
  const auto n = static_cast<double>(columns);
  const double mean = cpu::sum(columns, [=](std::int64_t j) { return x[j]; }) / n;
  const double variance = cpu::sum(columns,
                                   [=](std::int64_t j) {
                                     const double difference = static_cast<double>(x[j]) - mean;
                                     return difference * difference;
                                   }) /
                          n;
  return {static_cast<T>(mean), static_cast<T>(1 / std::sqrt(variance + eps))};
}

template <class T>
Kernel forward(RowExtents e, double eps, int threads) {
  return {.run = [=](const KernelArgs& args) {
    const T* x = args.inputs[0].as<T>();
    const T* weight = args.inputs[1].as<T>();
    const T* bias = args.inputs[2].as<T>();
    T* y = args.outputs[0].as<T>();
    T* means = args.outputs[1].as<T>();
    T* inverses = args.outputs[2].as<T>();
    cpu::parallel_for(threads, e.rows, [=](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) {
        const T* row = x + i * e.columns;
        const auto [mean, inverse] = statistics_of(row, e.columns, eps);
        means[i] = mean;
        inverses[i] = inverse;
        for (std::int64_t j = 0; j < e.columns; ++j)
          y[i * e.columns + j] = (row[j] - mean) * inverse * weight[j] + bias[j];
      }
    });
  }};
}

/// Adds one row to the sums of dweight and dbias, and writes its dx.
template <class T>
void backward_row(const T* dy, const T* x, const T* weight, RowStatistics<T> row,
                  std::int64_t columns, double* dweight, double* dbias, T* dx) {
  const auto normalized = [=](std::int64_t j) { return (x[j] - row.mean) * row.inverse; };
  const auto n = static_cast<double>(columns);
  const T mean =
      static_cast<T>(cpu::sum(columns, [=](std::int64_t j) { return dy[j] * weight[j]; }) / n);
  const T slope = static_cast<T>(
      cpu::sum(columns, [=](std::int64_t j) { return dy[j] * weight[j] * normalized(j); }) / n);
  for (std::int64_t j = 0; j < columns; ++j) {
    dweight[j] += static_cast<double>(dy[j] * normalized(j));
    dbias[j] += static_cast<double>(dy[j]);
  }
  for (std::int64_t j = 0; j < columns; ++j)
    dx[j] = row.inverse * (dy[j] * weight[j] - mean - normalized(j) * slope);
}

/// Each thread sums its rows in the workspace, dweight before dbias; then threads are added in
/// their order.
template <class T>
Kernel backward(RowExtents e, int threads) {
  const std::int64_t width = 2 * e.columns, parts = std::min<std::int64_t>(threads, e.rows);
  const auto run = [=](const KernelArgs& args) {
    const T* dy = args.inputs[0].as<T>();
    const T* x = args.inputs[1].as<T>();
    const T* weight = args.inputs[2].as<T>();
    const T* means = args.inputs[3].as<T>();
    const T* inverses = args.inputs[4].as<T>();
    T* dx = args.outputs[0].as<T>();
    T* dweight = args.outputs[1].as<T>();
    T* dbias = args.outputs[2].as<T>();
    double* sums = reinterpret_cast<double*>(args.workspace.data());
    cpu::parallel_for(threads, e.rows, [=](std::int64_t begin, std::int64_t end, int thread) {
      double* own = sums + thread * width;
      std::fill_n(own, width, 0.0);
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t at = i * e.columns;
        backward_row<T>(dy + at, x + at, weight, {means[i], inverses[i]}, e.columns, own,
                        own + e.columns, dx + at);
      }
    });
    for (std::int64_t part = 1; part < parts; ++part)
      for (std::int64_t j = 0; j < width; ++j) sums[j] += sums[part * width + j];
    for (std::int64_t j = 0; j < e.columns; ++j) {
      dweight[j] = static_cast<T>(sums[j]);
      dbias[j] = static_cast<T>(sums[e.columns + j]);
    }
  };
  return {.run = run, .workspace_bytes = static_cast<std::size_t>(parts * width) * sizeof(double)};
}

Kernel layernorm_factory(const OpSignature& s, const KernelContext& context) {
  const RowExtents e = row_extents(s.inputs[0]);
  const double eps = s.attributes.real("eps");
  return s.inputs[0].dtype == DType::kF64 ? forward<double>(e, eps, context.threads)
                                          : forward<float>(e, eps, context.threads);
}
DDP_REGISTER_CPU_KERNEL("layernorm", layernorm_factory);

Kernel layernorm_backward_factory(const OpSignature& s, const KernelContext& context) {
  const RowExtents e = row_extents(s.inputs[1]);
  return s.inputs[1].dtype == DType::kF64 ? backward<double>(e, context.threads)
                                          : backward<float>(e, context.threads);
}
DDP_REGISTER_CPU_KERNEL("layernorm_backward", layernorm_backward_factory);

}  // namespace
}  // namespace ddp
