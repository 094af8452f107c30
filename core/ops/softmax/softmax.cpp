// y_i = exp(x_i - m) / Σ_j exp(x_j - m) with m = max x; dx_i = y_i (dy_i - Σ_j dy_j y_j).
#include "core/ops/softmax/softmax.h"

#include "core/graph/differentiate.h"
#include "core/ops/op_name.h"

namespace ddp {
namespace {

const OpDefinition kSoftmax{
    .name = "softmax",
    .infer =
        [](const OpSignature& s) {
          if (s.inputs[0].shape.rank() < 1 || s.inputs[0].shape[-1] < 1)
            throw ConfigError("softmax needs rows [..., C] of at least one column");
          return std::vector<TensorType>{s.inputs[0]};
        },
    .gradient =
        [](GradientBuilder& b, const OpRef& op) {
          b.give(op.input(0),
                 b.emit("softmax_backward", op, "backward", {b.grad(op.output(0)), op.output(0)}));
        },
    // Maximum, difference, exponential, sum, quotient.
    .cost =
        [](const OpSignature& s) {
          return Cost{.flops = 5 * static_cast<double>(s.outputs[0].elements()),
                      .bytes = bytes_touched(s)};
        },
    .in_place = {{0, 0}},
};
DDP_REGISTER_OP(kSoftmax);

// Inputs: dy, y.
const OpDefinition kSoftmaxBackward{
    .name = "softmax_backward",
    .infer = [](const OpSignature& s) { return std::vector<TensorType>{s.inputs[0]}; },
    .cost =
        [](const OpSignature& s) {
          return Cost{.flops = 4 * static_cast<double>(s.outputs[0].elements()),
                      .bytes = bytes_touched(s)};
        },
    .in_place = {{0, 0}, {1, 0}},
};
DDP_REGISTER_OP(kSoftmaxBackward);

}  // namespace

Value softmax(Value x, const std::string& name) {
  return x.graph->add("softmax", op_name(*x.graph, name, "softmax"), {x});
}

}  // namespace ddp
