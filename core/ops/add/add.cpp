// y = a + b. Both inputs get dy itself. May be written over either input.
#include "core/ops/add/add.h"

#include "core/graph/differentiate.h"
#include "core/ops/op_name.h"

namespace ddp {
namespace {

const OpDefinition kAdd{
    .name = "add",
    .infer =
        [](const OpSignature& s) {
          if (s.inputs[0] != s.inputs[1])
            throw ConfigError("both summands need the same shape and type");
          return std::vector<TensorType>{s.inputs[0]};
        },
    .gradient =
        [](GradientBuilder& b, const OpRef& op) {
          const Value dy = b.grad(op.output(0));
          for (int i = 0; i < 2; ++i)
            if (b.wants(op.input(i))) b.give(op.input(i), dy);
        },
    .cost =
        [](const OpSignature& s) {
          return Cost{.flops = static_cast<double>(s.outputs[0].elements()),
                      .bytes = bytes_touched(s)};
        },
    .in_place = {{0, 0}, {1, 0}},
};
DDP_REGISTER_OP(kAdd);

}  // namespace

Value add(Value a, Value b, const std::string& name) {
  return a.graph->add("add", op_name(*a.graph, name, "add"), {a, b});
}

}  // namespace ddp
