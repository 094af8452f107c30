// y[n, oh, ow, c] = Σ over the window of x / kernel²; each element of x gets dy / kernel² from
// every window that covers it.
#include "core/graph/differentiate.h"
#include "core/ops/op_name.h"
#include "core/ops/pool/pool.h"

namespace ddp {
namespace {

/// Each window adds kernel² elements forward, and is added to kernel² elements backward.
Cost cost(const OpSignature& s, const TensorType& pooled) {
  const auto kernel = static_cast<double>(s.attributes.integer("kernel"));
  return {.flops = (kernel * kernel + 1) * static_cast<double>(pooled.elements()),
          .bytes = bytes_touched(s)};
}

const OpDefinition kAvgPool{
    .name = "avg_pool",
    .infer =
        [](const OpSignature& s) {
          return std::vector<TensorType>{{pooled_shape("average pooling", s), s.inputs[0].dtype}};
        },
    .gradient =
        [](GradientBuilder& b, const OpRef& op) {
          b.give(op.input(0), b.emit("avg_pool_backward", op, "backward", {b.grad(op.output(0))},
                                     pool_backward_attributes(op)));
        },
    .cost = [](const OpSignature& s) { return cost(s, s.outputs[0]); },
};
DDP_REGISTER_OP(kAvgPool);

// Input: dy. Attributes: those of avg_pool, height and width of x.
const OpDefinition kAvgPoolBackward{
    .name = "avg_pool_backward",
    .infer = [](const OpSignature& s) { return std::vector<TensorType>{pool_image(s)}; },
    .cost = [](const OpSignature& s) { return cost(s, s.inputs[0]); },
};
DDP_REGISTER_OP(kAvgPoolBackward);

}  // namespace

Value avg_pool(Value x, const PoolOptions& options) {
  return x.graph->add("avg_pool", op_name(*x.graph, options.name, "avg_pool"), {x},
                      pool_attributes(options));
}

}  // namespace ddp
