#include <algorithm>

#include "core/backend/cpu/parallel.h"
#include "core/graph/op_definition.h"

namespace ddp {
namespace {

template <class T>
Kernel constant(std::int64_t elements, T value, int threads) {
  return {.run = [elements, value, threads](const KernelArgs& args) {
    T* y = args.outputs[0].as<T>();
    cpu::parallel_for(threads, elements, [=](std::int64_t begin, std::int64_t end, int) {
      std::fill(y + begin, y + end, value);
    });
  }};
}

Kernel fill_factory(const OpSignature& s, const KernelContext& context) {
  const double value = s.attributes.real("value");
  const std::int64_t elements = s.outputs[0].elements();
  return s.outputs[0].dtype == DType::kF64
             ? constant<double>(elements, value, context.threads)
             : constant<float>(elements, static_cast<float>(value), context.threads);
}
DDP_REGISTER_CPU_KERNEL("fill", fill_factory);

}  // namespace
}  // namespace ddp
