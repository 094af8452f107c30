// Adds losses and counts of a micro-batch to StepState. No outputs and no gradient.
#include "core/ops/loss/loss.h"

namespace ddp {
namespace {

const OpDefinition kScore{
    .name = "score",
    .infer =
        [](const OpSignature& s) {
          if (s.inputs[1].shape.rank() != 2 ||
              s.inputs[0] != TensorType{{s.inputs[1].shape[0]}, master_dtype(s.inputs[1].dtype)})
            throw ConfigError("the score needs one loss of {} for each row of logits",
                              name_of(master_dtype(s.inputs[1].dtype)));
          return std::vector<TensorType>{};
        },
    .cost =
        [](const OpSignature& s) {
          return Cost{.flops = 2 * static_cast<double>(s.inputs[1].elements()),
                      .bytes = bytes_touched(s)};
        },
    .has_side_effect = true,
};
DDP_REGISTER_OP(kScore);

}  // namespace

void score(Value losses, Value logits, Value labels, Value weights, bool exact) {
  Graph& graph = *losses.graph;
  graph.add_op("score", graph.unique_name("score"), {losses, logits, labels, weights},
               {{"exact", std::int64_t{exact}}});
}

}  // namespace ddp
