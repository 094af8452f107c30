#include "core/ops/bias/add_bias_cuda.h"
#include "core/ops/row_grid.cuh"
#include "core/ops/rows.h"

namespace ddp {
namespace {

using namespace cuda;

template <class T, int N>
__global__ void add_bias_kernel(RowExtents e, const T* x, const T* bias, bool relu, T* y) {
  const std::int64_t c = first_pack() * N;
  if (c >= e.columns) return;
  float shift[N] = {};
  if (bias != nullptr) {
    const auto pack = load<T, N>(bias + c);
    for (int j = 0; j < N; ++j) shift[j] = to_float(pack.element[j]);
  }
  for (std::int64_t row = first_row(); row < e.rows; row += row_stride()) {
    auto pack = load<T, N>(x + row * e.columns + c);
    for (int j = 0; j < N; ++j) {
      const float sum = to_float(pack.element[j]) + shift[j];
      pack.element[j] = from_float<T>(relu && sum < 0.0F ? 0.0F : sum);
    }
    store(y + row * e.columns + c, pack);
  }
}

Kernel bias_factory(const OpSignature&, const KernelContext&) {
  return {.run = [](const KernelArgs& args) {
    add_bias(args.inputs[0], args.inputs[1].data, false, args.outputs[0], stream_of(args));
  }};
}
DDP_REGISTER_CUDA_KERNEL("bias", bias_factory);

}  // namespace

void add_bias(const TensorView& x, const void* bias, bool relu, const TensorView& y,
              cudaStream_t stream) {
  const RowExtents e = row_extents(x.type);
  with_packs(x.type.dtype, e.columns, [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int kN = decltype(pack)::value;
    constexpr std::int64_t kRowsPerThread = 8;
    const RowGrid launch = row_grid(e.rows, e.columns / kN, 1, kRowsPerThread);
    add_bias_kernel<T, kN><<<launch.grid, launch.block, 0, stream>>>(
        e, x.as<T>(), static_cast<const T*>(bias), relu, y.as<T>());
  });
  check_launch("bias");
}

}  // namespace ddp
