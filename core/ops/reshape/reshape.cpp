// y = x under the extents of the attribute "shape". The gradient is the same op back to the shape
// of x.
#include "core/ops/reshape/reshape.h"

#include "core/graph/differentiate.h"
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

}  // namespace

Value reshape(Value x, const Shape& shape) {
  return x.graph->add("reshape", x.graph->unique_name("reshape"), {x},
                      {{"shape", shape_attribute(shape)}});
}

Value flatten(Value x) { return reshape(x, {x.shape()[0], x.shape().elements() / x.shape()[0]}); }

}  // namespace ddp
