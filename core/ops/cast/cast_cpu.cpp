#include "core/backend/cpu/parallel.h"
#include "core/graph/op_definition.h"
#include "core/tensor/bfloat16.h"

namespace ddp {
namespace {

Kernel cast_factory(const OpSignature& s, const KernelContext& context) {
  DDP_CHECK(s.inputs[0].dtype == DType::kF32 && s.outputs[0].dtype == DType::kBF16,
            "the CPU casts F32 to BF16 only, not {} to {}", name_of(s.inputs[0].dtype),
            name_of(s.outputs[0].dtype));
  return {.run = [elements = s.inputs[0].elements(),
                  threads = context.threads](const KernelArgs& args) {
    const float* x = args.inputs[0].as<float>();
    BFloat16* y = args.outputs[0].as<BFloat16>();
    cpu::parallel_for(threads, elements, [=](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) y[i] = BFloat16(x[i]);
    });
  }};
}
DDP_REGISTER_CPU_KERNEL("cast", cast_factory);

}  // namespace
}  // namespace ddp
