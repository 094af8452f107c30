#include "core/backend/cpu/parallel.h"
#include "core/graph/op_definition.h"

namespace ddp {
namespace {

template <class T>
Kernel forward(std::int64_t elements, int threads) {
  return {.run = [=](const KernelArgs& args) {
    const T* x = args.inputs[0].as<T>();
    T* y = args.outputs[0].as<T>();
    cpu::parallel_for(threads, elements, [=](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) y[i] = x[i] < T{0} ? T{0} : x[i];
    });
  }};
}

template <class T>
Kernel backward(std::int64_t elements, int threads) {
  return {.run = [=](const KernelArgs& args) {
    const T* dy = args.inputs[0].as<T>();
    const T* y = args.inputs[1].as<T>();
    T* dx = args.outputs[0].as<T>();
    cpu::parallel_for(threads, elements, [=](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) dx[i] = y[i] <= T{0} ? T{0} : dy[i];
    });
  }};
}

Kernel relu_factory(const OpSignature& s, const KernelContext& context) {
  const std::int64_t elements = s.outputs[0].elements();
  return s.outputs[0].dtype == DType::kF64 ? forward<double>(elements, context.threads)
                                           : forward<float>(elements, context.threads);
}
DDP_REGISTER_CPU_KERNEL("relu", relu_factory);

Kernel relu_backward_factory(const OpSignature& s, const KernelContext& context) {
  const std::int64_t elements = s.outputs[0].elements();
  return s.outputs[0].dtype == DType::kF64 ? backward<double>(elements, context.threads)
                                           : backward<float>(elements, context.threads);
}
DDP_REGISTER_CPU_KERNEL("relu_backward", relu_backward_factory);

}  // namespace
}  // namespace ddp
