#include <algorithm>
#include <limits>

#include "core/backend/cpu/parallel.h"
#include "core/graph/op_definition.h"

namespace ddp {
namespace {

struct Extents {
  std::int64_t ids, entries, features;
};

template <class T>
Kernel forward(Extents e, int threads) {
  return {.run = [=](const KernelArgs& args) {
    const std::int32_t* ids = args.inputs[0].as<std::int32_t>();
    const T* w = args.inputs[1].as<T>();
    T* y = args.outputs[0].as<T>();
    cpu::parallel_for(threads, e.ids, [=](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) {
        T* row = y + i * e.features;
        if (ids[i] >= 0 && ids[i] < e.entries)
          std::copy_n(w + ids[i] * e.features, e.features, row);
        else
          std::fill_n(row, e.features, std::numeric_limits<T>::quiet_NaN());
      }
    });
  }};
}

// Threads share the columns, not the ids: any id may repeat without two threads meeting in one
// element, each sum is taken in the order of the ids, and all threads have the same work.
template <class T>
Kernel backward(Extents e, int threads) {
  return {.run = [=](const KernelArgs& args) {
    const std::int32_t* ids = args.inputs[0].as<std::int32_t>();
    const T* dy = args.inputs[1].as<T>();
    T* dw = args.outputs[0].as<T>();
    cpu::parallel_for(
        threads, e.entries * e.features,
        [=](std::int64_t begin, std::int64_t end, int) { std::fill(dw + begin, dw + end, T{0}); });
    cpu::parallel_for(threads, e.features, [=](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = 0; i < e.ids; ++i) {
        if (ids[i] < 0 || ids[i] >= e.entries) continue;
        const T* __restrict from = dy + i * e.features;
        T* __restrict to = dw + ids[i] * e.features;
        for (std::int64_t d = begin; d < end; ++d) to[d] += from[d];
      }
    });
  }};
}

Kernel embedding_factory(const OpSignature& s, const KernelContext& context) {
  const Extents e{s.inputs[0].elements(), s.inputs[1].shape[0], s.inputs[1].shape[1]};
  return s.inputs[1].dtype == DType::kF64 ? forward<double>(e, context.threads)
                                          : forward<float>(e, context.threads);
}
DDP_REGISTER_CPU_KERNEL("embedding", embedding_factory);

Kernel embedding_backward_factory(const OpSignature& s, const KernelContext& context) {
  const Extents e{s.inputs[0].elements(), s.outputs[0].shape[0], s.outputs[0].shape[1]};
  return s.inputs[1].dtype == DType::kF64 ? backward<double>(e, context.threads)
                                          : backward<float>(e, context.threads);
}
DDP_REGISTER_CPU_KERNEL("embedding_backward", embedding_backward_factory);

}  // namespace
}  // namespace ddp
