#include "core/backend/cpu/parallel.h"
#include "core/graph/op_definition.h"
#include "core/ops/loss/loss.h"

namespace ddp {
namespace {

template <class T>
std::int32_t largest_of(const T* x, std::int64_t classes) {
  std::int64_t largest = 0;
  bool ordered = true;
  for (std::int64_t j = 0; j < classes; ++j) {
    if (x[j] > x[largest]) largest = j;
    ordered &= x[j] == x[j];
  }
  return ordered ? static_cast<std::int32_t>(largest) : kNoPrediction;
}

template <class T>
Kernel predict_kernel(const Shape& logits, int threads) {
  return {.run = [samples = logits[0], classes = logits[1], threads](const KernelArgs& args) {
    const T* x = args.inputs[0].as<T>();
    std::int32_t* predictions = args.outputs[0].as<std::int32_t>();
    cpu::parallel_for(threads, samples, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i)
        predictions[i] = largest_of(x + i * classes, classes);
    });
  }};
}

Kernel predict_factory(const OpSignature& s, const KernelContext& context) {
  const TensorType& logits = s.inputs[0];
  return logits.dtype == DType::kF64 ? predict_kernel<double>(logits.shape, context.threads)
                                     : predict_kernel<float>(logits.shape, context.threads);
}
DDP_REGISTER_CPU_KERNEL("predict", predict_factory);

}  // namespace
}  // namespace ddp
