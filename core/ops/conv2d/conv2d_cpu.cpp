// Forward: each thread pads its samples one by one and correlates them with filters packed once per
// run.
#include "core/ops/conv2d/conv2d.h"
#include "core/ops/conv2d/correlate_cpu.h"
#include "core/ops/flag_attribute.h"

namespace ddp {
namespace {

using namespace cpu;

template <class T>
Kernel forward(const Conv2dGeometry& g, bool relu, int threads) {
  const Window window = padded_image(g);
  const std::int64_t terms = g.r * g.s * g.c;
  const std::int64_t packed = packed_elements<T>(terms, g.k);
  const std::int64_t bias_elements = packed_elements<T>(1, g.k);
  const auto run = [=](const KernelArgs& args) {
    const T* x = args.inputs[0].as<T>();
    const T* w = args.inputs[1].as<T>();
    const T* bias = args.inputs.size() > 2 ? args.inputs[2].as<T>() : nullptr;
    T* y = args.outputs[0].as<T>();
    T* filters = reinterpret_cast<T*>(args.workspace.data());
    T* packed_bias = filters + packed;
    T* scratch = packed_bias + bias_elements;

    parallel_for(threads, column_blocks<T>(g.k), [=](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t block = begin; block < end; ++block)
        for (std::int64_t j = 0; j < kTileColumns<T>; ++j) {
          const std::int64_t k = block * kTileColumns<T> + j;
          T* column = filters + block * terms * kTileColumns<T> + j;
          for (std::int64_t t = 0; t < terms; ++t)
            column[t * kTileColumns<T>] = k < g.k ? w[k * terms + t] : T{0};
        }
    });
    if (bias != nullptr) std::fill(std::copy(bias, bias + g.k, packed_bias), scratch, T{0});

    parallel_for(threads, g.n, [=](std::int64_t begin, std::int64_t end, int thread) {
      for (std::int64_t n = begin; n < end; ++n)
        correlate<T>({.window = open_window(window, x + n * g.h * g.w * g.c,
                                            scratch + thread * window.scratch()),
                      .row = window.row_stride(),
                      .pixel = g.c,
                      .stride = g.stride,
                      .filters = filters,
                      .filter_rows = g.r,
                      .run = g.s * g.c,
                      .y = y + n * g.p * g.q * g.k,
                      .y_row = g.q * g.k,
                      .y_pixel = g.k,
                      .rows = g.p,
                      .columns = g.q,
                      .channels = g.k,
                      .bias = bias == nullptr ? nullptr : packed_bias,
                      .relu = relu});
    });
  };
  const std::int64_t workspace = packed + bias_elements + threads * window.scratch();
  return {.run = run,
          .workspace_bytes = static_cast<std::size_t>(workspace) * sizeof(T),
          .algorithm = kTileName};
}

Kernel conv2d_factory(const OpSignature& s, const KernelContext& context) {
  const Conv2dGeometry g = conv2d_geometry(s.inputs[0].shape, s.inputs[1].shape, s.attributes);
  const bool relu = flag(s.attributes, "relu");
  return s.inputs[0].dtype == DType::kF64 ? forward<double>(g, relu, context.threads)
                                          : forward<float>(g, relu, context.threads);
}
DDP_REGISTER_CPU_KERNEL("conv2d", conv2d_factory);

}  // namespace
}  // namespace ddp
