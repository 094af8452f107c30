#include "core/ops/bias/bias.h"

#include <cmath>

#include "core/graph/differentiate.h"

namespace ddp {
namespace {

Cost cost(const OpSignature& s) {
  return {.flops = static_cast<double>(s.inputs[0].elements()), .bytes = bytes_touched(s)};
}

const OpDefinition kBias{
    .name = "bias",
    .infer =
        [](const OpSignature& s) {
          const TensorType& x = s.inputs[0];
          if (x.shape.rank() < 1 || s.inputs[1] != TensorType{{x.shape[-1]}, x.dtype})
            throw ConfigError("a bias needs one {} for each channel of its input",
                              name_of(x.dtype));
          return std::vector<TensorType>{x};
        },
    .gradient =
        [](GradientBuilder& b, const OpRef& op) {
          const Value dy = b.grad(op.output(0));
          if (b.wants(op.input(1)))
            b.give(op.input(1), b.emit("bias_backward", op, "backward", {dy}));
          if (b.wants(op.input(0))) b.give(op.input(0), dy);
        },
    .cost = cost,
    .in_place = {{0, 0}},
};
DDP_REGISTER_OP(kBias);

// Input: dy.
const OpDefinition kBiasBackward{
    .name = "bias_backward",
    .infer =
        [](const OpSignature& s) {
          return std::vector<TensorType>{{{s.inputs[0].shape[-1]}, s.inputs[0].dtype}};
        },
    .cost = cost,
};
DDP_REGISTER_OP(kBiasBackward);

// Inputs: dy, y. Outputs: dy where y > 0, and its sum over all but the channels.
const OpDefinition kBiasReluBackward{
    .name = "bias_relu_backward",
    .infer =
        [](const OpSignature& s) {
          return std::vector<TensorType>{s.inputs[0], {{s.inputs[0].shape[-1]}, s.inputs[0].dtype}};
        },
    .cost = cost,
    .in_place = {{0, 0}},
};
DDP_REGISTER_OP(kBiasReluBackward);

// Terms in each sum of the layer that produced x; 0 when that is not a layer with weights [outputs,
// ...].
std::int64_t fan_in(Value x) {
  const OpId producer = x.graph->value(x.id).producer;
  if (!producer.valid() || x.graph->op(producer).inputs.size() < 2) return 0;
  const Parameter* weight = x.graph->parameter_of(x.graph->op(producer).inputs[1]);
  if (weight == nullptr) return 0;
  const Shape& shape = x.graph->value(weight->value).type.shape;
  return shape.rank() < 2 ? 0 : shape.elements() / shape[0];
}

}  // namespace

Value bias(Value x, const std::string& name) {
  Init init;
  if (const std::int64_t terms = fan_in(x); terms > 0)
    init = {.kind = Init::Kind::kUniform, .scale = 1 / std::sqrt(static_cast<double>(terms))};
  const std::int64_t channels = x.shape().rank() < 1 ? 1 : x.shape()[-1];  // infer reports a scalar
  const Value b = x.graph->parameter(name + ".bias", {channels}, init);
  return x.graph->add("bias", name + ".bias", {x, b});
}

}  // namespace ddp
