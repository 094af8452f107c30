// y[i] = value, an attribute. No input, so no gradient.
#include "core/ops/fill/fill.h"

#include "core/ops/shape_attribute.h"

namespace ddp {
namespace {

DType dtype_attribute(const Attributes& attributes) {
  for (const DType dtype : {DType::kF32, DType::kF64})
    if (attributes.text("dtype") == name_of(dtype)) return dtype;
  throw ConfigError("a constant of type {} cannot be made, only of F32 or F64",
                    attributes.text("dtype"));
}

const OpDefinition kFill{
    .name = "fill",
    .infer =
        [](const OpSignature& s) {
          return std::vector<TensorType>{{shape_from(s.attributes), dtype_attribute(s.attributes)}};
        },
    .cost = [](const OpSignature& s) { return Cost{.flops = 0, .bytes = bytes_touched(s)}; },
};
DDP_REGISTER_OP(kFill);

}  // namespace

Value fill(Graph& graph, std::string_view name, const TensorType& type, double value) {
  return graph.add("fill", name, {},
                   {{"shape", shape_attribute(type.shape)},
                    {"dtype", std::string(name_of(type.dtype))},
                    {"value", value}});
}

}  // namespace ddp
