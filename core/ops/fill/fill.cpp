// y[i] = value, an attribute. No input, so no gradient.
#include "core/ops/fill/fill.h"

#include "core/ops/dtype_attribute.h"
#include "core/ops/shape_attribute.h"

namespace ddp {
namespace {

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
