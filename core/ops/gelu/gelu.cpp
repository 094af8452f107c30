// y = x Φ(x), dx = dy (Φ(x) + x Φ'(x)), where Φ is the normal distribution or its approximation.
#include "core/ops/gelu/gelu.h"

#include "core/graph/differentiate.h"
#include "core/ops/op_name.h"

namespace ddp {
namespace {

// An exponential or erf counts as one FLOP, like every other operation.
const OpDefinition kGelu{
    .name = "gelu",
    .infer =
        [](const OpSignature& s) {
          const std::string& approximate = s.attributes.text("approximate");
          if (approximate != "none" && approximate != "tanh")
            throw ConfigError("GELU is approximated by '{}', legal are none and tanh", approximate);
          return std::vector<TensorType>{s.inputs[0]};
        },
    .gradient =
        [](GradientBuilder& b, const OpRef& op) {
          b.give(op.input(0), b.emit("gelu_backward", op, "backward",
                                     {b.grad(op.output(0)), op.input(0)}, op.attributes()));
        },
    .cost =
        [](const OpSignature& s) {
          return Cost{.flops = 8 * static_cast<double>(s.outputs[0].elements()),
                      .bytes = bytes_touched(s)};
        },
    .in_place = {{0, 0}},
};
DDP_REGISTER_OP(kGelu);

// Inputs: dy, x. Attributes: those of gelu.
const OpDefinition kGeluBackward{
    .name = "gelu_backward",
    .infer = [](const OpSignature& s) { return std::vector<TensorType>{s.inputs[0]}; },
    .cost =
        [](const OpSignature& s) {
          return Cost{.flops = 14 * static_cast<double>(s.outputs[0].elements()),
                      .bytes = bytes_touched(s)};
        },
    .in_place = {{0, 0}, {1, 0}},
};
DDP_REGISTER_OP(kGeluBackward);

}  // namespace

Value gelu(Value x, const GeluOptions& options) {
  return x.graph->add("gelu", op_name(*x.graph, options.name, "gelu"), {x},
                      {{"approximate", options.approximate}});
}

}  // namespace ddp
