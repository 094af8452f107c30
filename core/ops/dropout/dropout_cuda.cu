#include "core/ops/dropout/mask.h"
#include "core/ops/row_grid.cuh"

namespace ddp {
namespace {

using namespace cuda;

/// A row is a sample, whose last pack may be longer than what is left. With Whole it never is, so
/// that packs can be loaded at once.
template <class T, bool Whole>
__global__ void drop_kernel(DropoutMask mask, std::int64_t samples, std::int64_t elements,
                            const T* x, const std::int64_t* sample_ids, const StepState* state,
                            T* y) {
  constexpr int kN = kPack<T>;
  static_assert(kN % 4 == 0, "a Philox block is of four words");
  const auto scale = static_cast<float>(mask.scale);
  const std::int64_t begin = first_pack() * kN;
  if (begin >= elements) return;
  const int count = static_cast<int>(elements - begin < kN ? elements - begin : kN);
  const std::uint64_t step = state->step;
  for (std::int64_t n = first_row(); n < samples; n += row_stride()) {
    const std::int64_t at = n * elements + begin;
    Pack<T> pack{};
    if constexpr (Whole) {
      pack = load(x + at);
    } else {
      for (int j = 0; j < kN; ++j)
        if (j < count) pack.element[j] = x[at + j];
    }
    const auto sample = static_cast<std::uint64_t>(sample_ids[n]);
    for (int j = 0; j < kN; j += 4) {
      const PhiloxBlock bits =
          philox(mask.key, step, sample, static_cast<std::uint32_t>((begin + j) / 4));
      for (int word = 0; word < 4; ++word) {
        T& element = pack.element[j + word];
        element = from_float<T>(bits[word] < mask.threshold ? 0.0F : to_float(element) * scale);
      }
    }
    if constexpr (Whole) {
      store(y + at, pack);
    } else {
      for (int j = 0; j < kN; ++j)
        if (j < count) y[at + j] = pack.element[j];
    }
  }
}

template <class T, bool Whole>
Kernel drop(const DropoutMask& mask, std::int64_t samples, std::int64_t elements) {
  const RowGrid launch = row_grid(samples, (elements + kPack<T> - 1) / kPack<T>);
  return {.run = [=](const KernelArgs& args) {
    drop_kernel<T, Whole><<<launch.grid, launch.block, 0, stream_of(args)>>>(
        mask, samples, elements, args.inputs[0].as<T>(), args.inputs[1].as<std::int64_t>(),
        args.state, args.outputs[0].as<T>());
    check_launch("dropout");
  }};
}

Kernel dropout_factory(const OpSignature& s, const KernelContext&) {
  const std::int64_t samples = s.inputs[0].shape[0];
  const std::int64_t elements = s.inputs[0].elements() / samples;
  const DropoutMask mask = dropout_mask(s.attributes);
  return with_packs(s.inputs[0].dtype, elements, [&](auto type, auto pack) {
    using T = decltype(type);
    return drop<T, decltype(pack)::value == kPack<T>>(mask, samples, elements);
  });
}
DDP_REGISTER_CUDA_KERNEL("dropout", dropout_factory);

}  // namespace
}  // namespace ddp
