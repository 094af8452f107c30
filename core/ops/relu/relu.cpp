// y = max(x, 0); dx = dy where y > 0.
#include "core/ops/relu/relu.h"

#include "core/graph/differentiate.h"
#include "core/ops/op_name.h"

namespace ddp {
namespace {

Cost cost(const OpSignature& s) {
  return {.flops = static_cast<double>(s.outputs[0].elements()), .bytes = bytes_touched(s)};
}

const OpDefinition kRelu{
    .name = "relu",
    .infer = [](const OpSignature& s) { return std::vector<TensorType>{s.inputs[0]}; },
    .gradient =
        [](GradientBuilder& b, const OpRef& op) {
          b.give(op.input(0),
                 b.emit("relu_backward", op, "backward", {b.grad(op.output(0)), op.output(0)}));
        },
    .cost = cost,
    .in_place = {{0, 0}},
};
DDP_REGISTER_OP(kRelu);

// Inputs: dy, y.
const OpDefinition kReluBackward{
    .name = "relu_backward",
    .infer = [](const OpSignature& s) { return std::vector<TensorType>{s.inputs[0]}; },
    .cost = cost,
    .in_place = {{0, 0}},
};
DDP_REGISTER_OP(kReluBackward);

}  // namespace

Value relu(Value x, const std::string& name) {
  return x.graph->add("relu", op_name(*x.graph, name, "relu"), {x});
}

}  // namespace ddp
