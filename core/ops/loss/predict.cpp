// The class of each sample. No gradient.
#include "core/ops/loss/loss.h"

namespace ddp {
namespace {

const OpDefinition kPredict{
    .name = "predict",
    .infer =
        [](const OpSignature& s) {
          if (s.inputs[0].shape.rank() != 2)
            throw ConfigError("a prediction needs logits [samples, classes]");
          return std::vector<TensorType>{{Shape{s.inputs[0].shape[0]}, DType::kI32}};
        },
    .cost =
        [](const OpSignature& s) {
          return Cost{.flops = static_cast<double>(s.inputs[0].elements()),
                      .bytes = bytes_touched(s)};
        },
};
DDP_REGISTER_OP(kPredict);

}  // namespace

Value predict(Value logits) {
  Graph& graph = *logits.graph;
  return graph.add("predict", graph.unique_name("predict"), {logits}, {});
}

}  // namespace ddp
