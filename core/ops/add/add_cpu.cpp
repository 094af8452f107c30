#include "core/backend/cpu/parallel.h"
#include "core/graph/op_definition.h"

namespace ddp {
namespace {

template <class T>
Kernel sum(std::int64_t elements, int threads) {
  return {.run = [elements, threads](const KernelArgs& args) {
    const T* a = args.inputs[0].as<T>();
    const T* b = args.inputs[1].as<T>();
    T* y = args.outputs[0].as<T>();
    cpu::parallel_for(threads, elements, [=](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) y[i] = a[i] + b[i];
    });
  }};
}

Kernel add_factory(const OpSignature& s, const KernelContext& context) {
  const std::int64_t elements = s.outputs[0].elements();
  return s.outputs[0].dtype == DType::kF64 ? sum<double>(elements, context.threads)
                                           : sum<float>(elements, context.threads);
}
DDP_REGISTER_CPU_KERNEL("add", add_factory);

}  // namespace
}  // namespace ddp
