// y[n, c] = mean over height and width of x[n, h, w, c]. The gradient spreads dy / (H W) over the
// image.
#include <algorithm>

#include "core/graph/differentiate.h"
#include "core/ops/op_name.h"
#include "core/ops/pool/pool.h"

namespace ddp {
namespace {

Cost cost(const OpSignature& s) {
  const double image =
      static_cast<double>(std::max(s.inputs[0].elements(), s.outputs[0].elements()));
  return {.flops = image, .bytes = bytes_touched(s)};
}

const OpDefinition kGlobalAveragePool{
    .name = "global_average_pool",
    .infer =
        [](const OpSignature& s) {
          const TensorType& x = s.inputs[0];
          if (x.shape.rank() != 4)
            throw ConfigError("global average pooling needs images [N, H, W, C]");
          return std::vector<TensorType>{{{x.shape[0], x.shape[3]}, x.dtype}};
        },
    .gradient =
        [](GradientBuilder& b, const OpRef& op) {
          const Shape& image = op.input(0).shape();
          b.give(op.input(0),
                 b.emit("global_average_pool_backward", op, "backward", {b.grad(op.output(0))},
                        {{"height", image[1]}, {"width", image[2]}}));
        },
    .cost = cost,
};

const OpDefinition kGlobalAveragePoolBackward{
    .name = "global_average_pool_backward",
    .infer =
        [](const OpSignature& s) {
          const TensorType& dy = s.inputs[0];
          return std::vector<TensorType>{{{dy.shape[0], s.attributes.integer("height"),
                                           s.attributes.integer("width"), dy.shape[1]},
                                          dy.dtype}};
        },
    .cost = cost,
};

DDP_REGISTER_OP(kGlobalAveragePool);
DDP_REGISTER_OP(kGlobalAveragePoolBackward);

}  // namespace

Value global_average_pool(Value x, const std::string& name) {
  return x.graph->add("global_average_pool", op_name(*x.graph, name, "average_pool"), {x});
}

}  // namespace ddp
