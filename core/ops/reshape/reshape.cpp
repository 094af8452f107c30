// y = x under the extents of the attribute "shape". The gradient is the same op back to the shape
// of x.
#include "core/ops/reshape/reshape.h"

#include <algorithm>

#include "core/graph/differentiate.h"
#include "core/ops/op_name.h"
#include "core/ops/shape_attribute.h"

namespace ddp {
namespace {

std::vector<TensorType> infer(const OpSignature& signature) {
  const Shape shape = shape_from(signature.attributes);
  const TensorType& x = signature.inputs[0];
  if (shape.elements() != x.elements())
    throw ConfigError("{} elements cannot be seen as {}, which has {}", x.elements(),
                      shape.to_string(), shape.elements());
  return {{shape, x.dtype}};
}

const OpDefinition kReshape{
    .name = "reshape",
    .infer = infer,
    .gradient =
        [](GradientBuilder& b, const OpRef& op) {
          b.give(op.input(0), b.emit("reshape", op, "backward", {b.grad(op.output(0))},
                                     {{"shape", shape_attribute(op.input(0).shape())}}));
        },
    .cost = [](const OpSignature&) { return Cost{}; },
    .is_view = true,
};
DDP_REGISTER_OP(kReshape);

/// One row for each sample.
Shape flat(const Shape& shape) { return {shape[0], shape.elements() / shape[0]}; }

/// Ops that may overwrite their input treat each column alone, or leave it where it is at least.
bool keeps_columns(const Op& op) {
  return std::ranges::any_of(op.definition->in_place, [](const InPlace& pair) {
    return pair.input == 0 && pair.output == 0;
  });
}

}  // namespace

Value reshape(Value x, const Shape& shape, const std::string& name) {
  return x.graph->add("reshape", op_name(*x.graph, name, "reshape"), {x},
                      {{"shape", shape_attribute(shape)}});
}

Value flatten(Value x, const std::string& name) { return reshape(x, flat(x.shape()), name); }

std::optional<Shape> flattened_image(Value x) {
  const Graph& graph = *x.graph;
  OpId producer = graph.value(x.id).producer;
  while (producer.valid() && keeps_columns(graph.op(producer)))
    producer = graph.value(graph.op(producer).inputs[0]).producer;
  if (!producer.valid() || !graph.op(producer).definition->is_view) return std::nullopt;
  const Shape& image = graph.value(graph.op(producer).inputs[0]).type.shape;
  if (image.rank() != 4 || x.shape() != flat(image)) return std::nullopt;
  return image;
}

}  // namespace ddp
