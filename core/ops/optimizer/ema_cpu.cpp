#include <algorithm>

#include "core/backend/cpu/parallel.h"
#include "core/ops/optimizer/segments.h"

namespace ddp {
namespace {

// The difference form: the average of a constant is exactly that constant.
template <class T>
void update(const T step, std::int64_t n, const T* __restrict value, T* __restrict average) {
  for (std::int64_t i = 0; i < n; ++i) average[i] += step * (value[i] - average[i]);
}

template <class T>
Kernel ema(std::int64_t elements, double decay, int threads) {
  return {.run = [=](const KernelArgs& args) {
    const StepState& state = *args.state;
    if (state.skip != 0) return;
    const double updates = static_cast<double>(state.update);
    const T step = static_cast<T>(1 - std::min(decay, (1 + updates) / (10 + updates)));
    const T* value = args.inputs[0].as<T>();
    T* average = args.outputs[0].as<T>();
    cpu::parallel_for(threads, elements, [=](std::int64_t begin, std::int64_t end, int) {
      update(step, end - begin, value + begin, average + begin);
    });
  }};
}

Kernel ema_factory(const OpSignature& s, const KernelContext& context) {
  check_slabs(s, 1);
  const std::int64_t elements = s.inputs[0].elements();
  const double decay = s.attributes.real("decay");
  return s.inputs[0].dtype == DType::kF64 ? ema<double>(elements, decay, context.threads)
                                          : ema<float>(elements, decay, context.threads);
}
DDP_REGISTER_CPU_KERNEL("ema", ema_factory);

}  // namespace
}  // namespace ddp
