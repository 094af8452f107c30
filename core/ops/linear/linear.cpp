#include "core/ops/linear/linear.h"

#include <cmath>

#include "core/graph/differentiate.h"
#include "core/ops/bias/bias.h"
#include "core/ops/reshape/reshape.h"

namespace ddp {
namespace {

std::vector<TensorType> infer(const OpSignature& signature) {
  const TensorType& x = signature.inputs[0];
  const TensorType& w = signature.inputs[1];
  if (x.shape.rank() != 2)
    throw ConfigError("a linear layer needs a matrix [N, K]; flatten images first");
  if (w.shape[0] < 1) throw ConfigError("a linear layer needs at least 1 unit, not {}", w.shape[0]);
  if (x.dtype != w.dtype)
    throw ConfigError("the input is {}, the weight {}", name_of(x.dtype), name_of(w.dtype));
  if (x.shape[1] != w.shape[1])
    throw ConfigError("the input has {} features, the weight {}", x.shape[1], w.shape[1]);
  if (signature.inputs.size() > 2 && signature.inputs[2] != TensorType{{w.shape[0]}, x.dtype})
    throw ConfigError("the bias has to be {} elements of {}", w.shape[0], name_of(x.dtype));
  return {{{x.shape[0], w.shape[0]}, x.dtype}};
}

void gradient(GradientBuilder& b, const OpRef& op) {
  DDP_CHECK(op.input_count() == 2, "linear layer '{}' is fused before it is differentiated",
            op.name());
  const Value x = op.input(0), w = op.input(1), dy = b.grad(op.output(0));
  if (b.wants(w)) b.give(w, b.emit("linear_backward_weight", op, "backward_weight", {x, dy}));
  if (b.wants(x)) b.give(x, b.emit("linear_backward_data", op, "backward_data", {w, dy}));
}

Cost cost(const OpSignature& s, std::int64_t multiply_adds) {
  return {.flops = 2.0 * static_cast<double>(multiply_adds), .bytes = bytes_touched(s)};
}

const OpDefinition kLinear{
    .name = "linear",
    .infer = infer,
    .gradient = gradient,
    .cost =
        [](const OpSignature& s) { return cost(s, s.inputs[0].elements() * s.inputs[1].shape[0]); },
};
DDP_REGISTER_OP(kLinear);

// Inputs: w, dy.
const OpDefinition kLinearBackwardData{
    .name = "linear_backward_data",
    .infer =
        [](const OpSignature& s) {
          return std::vector<TensorType>{
              {{s.inputs[1].shape[0], s.inputs[0].shape[1]}, s.inputs[1].dtype}};
        },
    .cost =
        [](const OpSignature& s) { return cost(s, s.inputs[0].elements() * s.inputs[1].shape[0]); },
};
DDP_REGISTER_OP(kLinearBackwardData);

// Inputs: x, dy.
const OpDefinition kLinearBackwardWeight{
    .name = "linear_backward_weight",
    .infer =
        [](const OpSignature& s) {
          return std::vector<TensorType>{
              {{s.inputs[1].shape[1], s.inputs[0].shape[1]}, s.inputs[1].dtype}};
        },
    .cost =
        [](const OpSignature& s) { return cost(s, s.inputs[0].elements() * s.inputs[1].shape[1]); },
};
DDP_REGISTER_OP(kLinearBackwardWeight);

// Behind a flattened image, columns stand in the order H, W, C in memory and C, H, W in files.
FileLayout file_layout(Value x, const Shape& weight) {
  const std::optional<Shape> image = flattened_image(x);
  if (!image) return {};
  return {.view = {weight[0], (*image)[1], (*image)[2], (*image)[3]},
          .order = {0, 3, 1, 2},
          .file = weight};
}

}  // namespace

Value linear(Value x, const Linear& layer) {
  const std::int64_t features =
      x.shape().rank() == 2 ? x.shape()[1] : 1;  // infer reports another rank
  const Shape shape{layer.units, features};
  const double bound = 1 / std::sqrt(static_cast<double>(features));
  const Value w =
      x.graph->parameter(layer.name + ".weight", shape,
                         {.kind = Init::Kind::kUniform, .scale = bound}, file_layout(x, shape));
  const Value y = x.graph->add("linear", layer.name, {x, w});
  return layer.bias ? bias(y, layer.name) : y;
}

}  // namespace ddp
