#include <limits>

#include "core/ops/row_grid.cuh"

namespace ddp {
namespace {

using namespace cuda;

template <class T, int N>
__global__ void look_up_kernel(std::int64_t ids_count, std::int64_t entries, std::int64_t features,
                               const std::int32_t* ids, const T* w, T* y) {
  const std::int64_t d = first_pack() * N;
  if (d >= features) return;
  Pack<T, N> nan;
  for (T& element : nan.element) element = from_float<T>(std::numeric_limits<float>::quiet_NaN());
  for (std::int64_t i = first_row(); i < ids_count; i += row_stride()) {
    const std::int64_t id = ids[i];
    store(y + i * features + d, id >= 0 && id < entries ? load<T, N>(w + id * features + d) : nan);
  }
}

Kernel embedding_factory(const OpSignature& s, const KernelContext&) {
  const std::int64_t ids = s.inputs[0].elements();
  const std::int64_t entries = s.inputs[1].shape[0], features = s.inputs[1].shape[1];
  return with_packs(s.inputs[1].dtype, features, [&](auto type, auto pack) -> Kernel {
    using T = decltype(type);
    constexpr int kN = decltype(pack)::value;
    const RowGrid launch = row_grid(ids, features / kN);
    return {.run = [=](const KernelArgs& args) {
      look_up_kernel<T, kN><<<launch.grid, launch.block, 0, stream_of(args)>>>(
          ids, entries, features, args.inputs[0].as<std::int32_t>(), args.inputs[1].as<T>(),
          args.outputs[0].as<T>());
      check_launch("embedding");
    }};
  });
}
DDP_REGISTER_CUDA_KERNEL("embedding", embedding_factory);

}  // namespace
}  // namespace ddp
