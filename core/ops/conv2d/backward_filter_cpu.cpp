// Filter gradient: dw[k, r, t] = Σ_{n,p,q} x[n, p*stride + r, q*stride, t] * dy[n,p,q,k], where t
// runs over the S*C neighbouring elements of a filter row. Each thread sums over its samples in a
// partial result [R*S*C, K], which are then added in the order of the threads, so that a fixed
// number of threads always gives the same bytes.
#include "core/ops/conv2d/conv2d.h"
#include "core/ops/conv2d/correlate_cpu.h"

namespace ddp {
namespace {

using namespace cpu;

/// Adds (or, at first, sets) one sample's share of the gradient. `x` has rows of `row` elements,
/// `dy` and `sum` rows of padded_columns(K).
template <class T>
void add_sample(const Conv2dGeometry& g, const T* x, std::int64_t row, const T* dy, bool first,
                T* sum) {
  const std::int64_t run = g.s * g.c, tiles = row_tiles(run), filters = padded_columns<T>(g.k);
  for (std::int64_t k = 0; k < filters; k += kTileColumns<T>)
    for (std::int64_t r = 0; r < g.r; ++r)
      for (std::int64_t tile = 0; tile < tiles; ++tile) {
        const std::int64_t t = part_begin(run, tiles, tile);
        compute_tile<T>(static_cast<int>(part_begin(run, tiles, tile + 1) - t),
                        {.a = x + r * row + t,
                         .a_row = 1,
                         .a_step = g.stride * g.c,
                         .a_outer = g.stride * row,
                         .b = dy + k,
                         .b_step = filters,
                         .outer = g.p,
                         .steps = g.q,
                         .y = sum + (r * run + t) * filters + k,
                         .y_row = filters,
                         .columns = std::min(filters - k, kTileColumns<T>),
                         .accumulate = !first});
      }
}

template <class T>
Kernel backward_filter(const Conv2dGeometry& g, int threads) {
  const Window image = padded_image(g);
  const Window gradient{.image_rows = g.p,
                        .image_columns = g.q,
                        .channels = g.k,
                        .margin = 0,
                        .rows = g.p,
                        .columns = g.q,
                        .padded_channels = padded_columns<T>(g.k)};
  const std::int64_t terms = g.r * g.s * g.c, filters = padded_columns<T>(g.k);
  const std::int64_t partials = std::min<std::int64_t>(threads, g.n);
  const std::int64_t share =
      terms * filters + image.scratch() + gradient.scratch();  // workspace of a thread
  const auto run = [=](const KernelArgs& args) {
    const T* x = args.inputs[0].as<T>();
    const T* dy = args.inputs[1].as<T>();
    T* dw = args.outputs[0].as<T>();
    T* workspace = reinterpret_cast<T*>(args.workspace.data());

    parallel_for(threads, g.n, [=](std::int64_t begin, std::int64_t end, int thread) {
      T* sum = workspace + thread * share;
      T* scratch = sum + terms * filters;
      for (std::int64_t n = begin; n < end; ++n)
        add_sample(g, open_window(image, x + n * g.h * g.w * g.c, scratch), image.row_stride(),
                   open_window(gradient, dy + n * g.p * g.q * g.k, scratch + image.scratch()),
                   n == begin, sum);
    });
    parallel_for(threads, g.k, [=](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t k = begin; k < end; ++k)
        for (std::int64_t t = 0; t < terms; ++t) {
          T total = workspace[t * filters + k];
          for (std::int64_t part = 1; part < partials; ++part)
            total += workspace[part * share + t * filters + k];
          dw[k * terms + t] = total;
        }
    });
  };
  return {.run = run,
          .workspace_bytes = static_cast<std::size_t>(partials * share) * sizeof(T),
          .algorithm = kTileName};
}

Kernel backward_filter_factory(const OpSignature& s, const KernelContext& context) {
  const Conv2dGeometry g = conv2d_backward_filter_geometry(s);
  return s.inputs[0].dtype == DType::kF64 ? backward_filter<double>(g, context.threads)
                                          : backward_filter<float>(g, context.threads);
}
DDP_REGISTER_CPU_KERNEL("conv2d_backward_filter", backward_filter_factory);

}  // namespace
}  // namespace ddp
