// A row stays in the first-level cache between its passes, so memory is read and written once.
#include "core/backend/cpu/exp.h"
#include "core/backend/cpu/parallel.h"
#include "core/backend/cpu/reduce.h"
#include "core/graph/op_definition.h"
#include "core/ops/rows.h"

namespace ddp {
namespace {

template <class T>
void softmax_row(const T* x, std::int64_t n, T* y) {
  const T largest = cpu::largest(x, n);
  for (std::int64_t j = 0; j < n; ++j) y[j] = cpu::exp(x[j] - largest);
  const T scale = static_cast<T>(1 / cpu::sum(n, [=](std::int64_t j) { return y[j]; }));
  for (std::int64_t j = 0; j < n; ++j) y[j] *= scale;
}

template <class T>
Kernel forward(RowExtents e, int threads) {
  return {.run = [=](const KernelArgs& args) {
    const T* x = args.inputs[0].as<T>();
    T* y = args.outputs[0].as<T>();
    cpu::parallel_for(threads, e.rows, [=](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i)
        softmax_row(x + i * e.columns, e.columns, y + i * e.columns);
    });
  }};
}

template <class T>
Kernel backward(RowExtents e, int threads) {
  return {.run = [=](const KernelArgs& args) {
    const T* dy = args.inputs[0].as<T>();
    const T* y = args.inputs[1].as<T>();
    T* dx = args.outputs[0].as<T>();
    cpu::parallel_for(threads, e.rows, [=](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t at = begin * e.columns; at < end * e.columns; at += e.columns) {
        const T mean = static_cast<T>(
            cpu::sum(e.columns, [=](std::int64_t j) { return dy[at + j] * y[at + j]; }));
        for (std::int64_t j = at; j < at + e.columns; ++j) dx[j] = y[j] * (dy[j] - mean);
      }
    });
  }};
}

Kernel softmax_factory(const OpSignature& s, const KernelContext& context) {
  const RowExtents e = row_extents(s.inputs[0]);
  return s.inputs[0].dtype == DType::kF64 ? forward<double>(e, context.threads)
                                          : forward<float>(e, context.threads);
}
DDP_REGISTER_CPU_KERNEL("softmax", softmax_factory);

Kernel softmax_backward_factory(const OpSignature& s, const KernelContext& context) {
  const RowExtents e = row_extents(s.inputs[0]);
  return s.inputs[0].dtype == DType::kF64 ? backward<double>(e, context.threads)
                                          : backward<float>(e, context.threads);
}
DDP_REGISTER_CPU_KERNEL("softmax_backward", softmax_backward_factory);

}  // namespace
}  // namespace ddp
