// With z = (x - mean) / deviation and g = dy · weight, averages over the row:
// dx = (g - mean(g) - z mean(g z)) / deviation, dweight = Σ_rows dy z, dbias = Σ_rows dy.
#include "core/ops/layernorm/layernorm.h"

#include <cmath>

#include "core/graph/differentiate.h"
#include "core/ops/reshape/reshape.h"

namespace ddp {
namespace {

std::vector<TensorType> infer(const OpSignature& s) {
  const TensorType& x = s.inputs[0];
  if (x.shape.rank() < 1 || x.shape[-1] < 1)
    throw ConfigError("layer norm needs rows [..., D] of at least one column");
  const std::int64_t columns = x.shape[-1];
  const DType master = master_dtype(x.dtype);
  for (const std::size_t i : {1U, 2U})
    if (s.inputs[i] != TensorType{{columns}, master})
      throw ConfigError("layer norm of rows of {} needs one number of {} for each column", columns,
                        name_of(master));
  if (const double eps = s.attributes.real("eps"); !(eps >= 0 && std::isfinite(eps)))
    throw ConfigError("the eps of layer norm is {}, it has to be a number from 0", eps);
  const TensorType per_row{{x.elements() / columns}, master};
  return {x, per_row, per_row};
}

void gradient(GradientBuilder& b, const OpRef& op) {
  const Value x = op.input(0), weight = op.input(1), bias = op.input(2);
  const std::vector<Value> gradients =
      b.emit_all("layernorm_backward", op, "backward",
                 {b.grad(op.output(0)), x, weight, op.output(1), op.output(2)});
  b.give(x, gradients[0]);
  b.give(weight, gradients[1]);
  b.give(bias, gradients[2]);
}

const OpDefinition kLayerNorm{
    .name = "layernorm",
    .infer = infer,
    .gradient = gradient,
    .cost =
        [](const OpSignature& s) {
          return Cost{.flops = 8 * static_cast<double>(s.inputs[0].elements()),
                      .bytes = bytes_touched(s)};
        },
    .in_place = {{0, 0}},
};
DDP_REGISTER_OP(kLayerNorm);

const OpDefinition kLayerNormBackward{
    .name = "layernorm_backward",
    .infer =
        [](const OpSignature& s) {
          return std::vector<TensorType>{s.inputs[1], s.inputs[2], s.inputs[2]};
        },
    .cost =
        [](const OpSignature& s) {
          return Cost{.flops = 14 * static_cast<double>(s.inputs[1].elements()),
                      .bytes = bytes_touched(s)};
        },
    // x dies here, dy may live on as the gradient of a residual branch.
    .in_place = {{1, 0}, {0, 0}},
};
DDP_REGISTER_OP(kLayerNormBackward);

FileLayout file_layout(Value x, std::int64_t columns) {
  const std::optional<Shape> image = flattened_image(x);
  if (!image) return {};
  return {.view = {(*image)[1], (*image)[2], (*image)[3]}, .order = {2, 0, 1}, .file = {columns}};
}

}  // namespace

Value layernorm(Value x, const LayerNorm& layer) {
  const std::int64_t columns = x.shape().rank() < 1 ? 1 : x.shape()[-1];  // infer reports a scalar
  const FileLayout file = file_layout(x, columns);
  const TensorType type{{columns}, x.graph->master_dtype()};
  const Value weight =
      x.graph->parameter(layer.name + ".weight", type, {.kind = Init::Kind::kOne}, file);
  const Value bias =
      x.graph->parameter(layer.name + ".bias", type, {.kind = Init::Kind::kZero}, file);
  return x.graph->add_op("layernorm", layer.name, {x, weight, bias}, {{"eps", layer.eps}})[0];
}

}  // namespace ddp
