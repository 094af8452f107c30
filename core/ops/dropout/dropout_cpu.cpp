#include <algorithm>

#include "core/backend/cpu/parallel.h"
#include "core/graph/op_definition.h"
#include "core/ops/dropout/mask.h"

namespace ddp {
namespace {

constexpr std::int64_t kLanes =
    16;  // Philox blocks computed side by side, so that the compiler uses vectors
constexpr std::int64_t kGroup = 4 * kLanes;

/// Random bits of elements [4 block, 4 block + kGroup) of one sample: element e gets word e % 4 of
/// block e / 4.
void random_group(PhiloxKey key, std::uint64_t step, std::uint64_t sample, std::uint32_t block,
                  std::uint32_t* __restrict bits) {
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const PhiloxBlock random = philox(key, step, sample, block + lane);
    for (std::uint32_t word = 0; word < 4; ++word) bits[4 * lane + word] = random[word];
  }
}

template <class T>
void drop_sample(const DropoutMask& mask, std::uint64_t step, std::uint64_t sample,
                 std::int64_t elements, const T* x, T* y) {
  const T scale = static_cast<T>(mask.scale);
  for (std::int64_t begin = 0; begin < elements; begin += kGroup) {
    std::uint32_t bits[kGroup];
    random_group(mask.key, step, sample, static_cast<std::uint32_t>(begin / 4), bits);
    const std::int64_t count = std::min(kGroup, elements - begin);
    for (std::int64_t i = 0; i < count; ++i)
      y[begin + i] = bits[i] < mask.threshold ? T{0} : x[begin + i] * scale;
  }
}

template <class T>
Kernel drop(const DropoutMask& mask, const Shape& shape, int threads) {
  const std::int64_t samples = shape[0], elements = shape.elements() / samples;
  return {.run = [mask, samples, elements, threads](const KernelArgs& args) {
    const T* x = args.inputs[0].as<T>();
    const std::int64_t* sample_ids = args.inputs[1].as<std::int64_t>();
    T* y = args.outputs[0].as<T>();
    const std::uint64_t step = args.state->step;
    cpu::parallel_for(threads, samples, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t n = begin; n < end; ++n)
        drop_sample(mask, step, static_cast<std::uint64_t>(sample_ids[n]), elements,
                    x + n * elements, y + n * elements);
    });
  }};
}

Kernel dropout_factory(const OpSignature& s, const KernelContext& context) {
  const DropoutMask mask = dropout_mask(s.attributes);
  const Shape& shape = s.inputs[0].shape;
  return s.inputs[0].dtype == DType::kF64 ? drop<double>(mask, shape, context.threads)
                                          : drop<float>(mask, shape, context.threads);
}
DDP_REGISTER_CPU_KERNEL("dropout", dropout_factory);

}  // namespace
}  // namespace ddp
