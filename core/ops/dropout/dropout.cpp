// y = x · mask / (1 - p). The op is linear with a mask that depends on no tensor but the sample
// ids, so it is its own gradient: dx = dropout(dy).
#include "core/ops/dropout/dropout.h"

#include "core/graph/differentiate.h"
#include "core/ops/op_name.h"

namespace ddp {
namespace {

std::vector<TensorType> infer(const OpSignature& signature) {
  const TensorType& x = signature.inputs[0];
  const TensorType& sample_ids = signature.inputs[1];
  const double probability = signature.attributes.real("probability");
  if (!(probability >= 0 && probability < 1))
    throw ConfigError("the dropout probability is {}, legal are 0 <= p < 1", probability);
  if (x.shape.rank() < 1 || sample_ids != TensorType{{x.shape[0]}, DType::kI64})
    throw ConfigError("dropout needs one sample id (I64) for each sample");
  return {x};
}

const OpDefinition kDropout{
    .name = "dropout",
    .infer = infer,
    .gradient =
        [](GradientBuilder& b, const OpRef& op) {
          b.give(op.input(0), b.emit("dropout", op, "backward", {b.grad(op.output(0)), op.input(1)},
                                     op.attributes()));
        },
    .cost =
        [](const OpSignature& s) {
          return Cost{.flops = static_cast<double>(s.outputs[0].elements()),
                      .bytes = bytes_touched(s)};
        },
    .in_place = {{0, 0}},
};
DDP_REGISTER_OP(kDropout);

}  // namespace

Value dropout(Value x, Value sample_ids, const DropoutOptions& options) {
  if (options.probability == 0) return x;
  Graph& graph = *x.graph;
  return graph.add("dropout", op_name(graph, options.name, "dropout"), {x, sample_ids},
                   {{"probability", options.probability},
                    {"instance", options.instance},
                    {"seed", static_cast<std::int64_t>(options.seed)}});
}

}  // namespace ddp
