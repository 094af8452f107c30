// y[i, :] = w[ids[i], :]; dw[v, :] = Σ dy[i, :] over all i with ids[i] = v.
#include "core/ops/embedding/embedding.h"

#include "core/graph/differentiate.h"

namespace ddp {
namespace {

std::vector<TensorType> infer(const OpSignature& s) {
  const TensorType& ids = s.inputs[0];
  const TensorType& w = s.inputs[1];
  if (ids.dtype != DType::kI32)
    throw ConfigError("an embedding needs ids of type I32, not {}", name_of(ids.dtype));
  if (ids.shape.rank() < 1 || ids.shape.rank() >= Shape::kMaxRank)
    throw ConfigError("an embedding needs ids of 1 to {} axes, not {}", Shape::kMaxRank - 1,
                      ids.shape.rank());
  if (w.shape.rank() != 2 || w.shape[0] < 1 || w.shape[1] < 1)
    throw ConfigError("an embedding needs a table [entries, features] of at least 1x1, not {}",
                      w.shape.to_string());
  std::vector<std::int64_t> extents(ids.shape.extents().begin(), ids.shape.extents().end());
  extents.push_back(w.shape[1]);
  return {{Shape{extents}, w.dtype}};
}

void gradient(GradientBuilder& b, const OpRef& op) {
  const Value w = op.input(1);
  b.give(w, b.emit("embedding_backward", op, "backward", {op.input(0), b.grad(op.output(0))},
                   {{"entries", w.shape()[0]}}));
}

const OpDefinition kEmbedding{
    .name = "embedding",
    .infer = infer,
    .gradient = gradient,
    // Of the table, only the rows that are picked are read.
    .cost =
        [](const OpSignature& s) {
          return Cost{.bytes = static_cast<double>(s.inputs[0].bytes()) +
                               2 * static_cast<double>(s.outputs[0].bytes())};
        },
};
DDP_REGISTER_OP(kEmbedding);

// Inputs: ids, dy.
const OpDefinition kEmbeddingBackward{
    .name = "embedding_backward",
    .infer =
        [](const OpSignature& s) {
          const TensorType& dy = s.inputs[1];
          return std::vector<TensorType>{
              {{s.attributes.integer("entries"), dy.shape[-1]}, dy.dtype}};
        },
    .cost =
        [](const OpSignature& s) {
          return Cost{.flops = static_cast<double>(s.inputs[1].elements()),
                      .bytes = bytes_touched(s)};
        },
};
DDP_REGISTER_OP(kEmbeddingBackward);

}  // namespace

Value embedding(Value ids, const Embedding& layer) {
  const Value w = ids.graph->parameter(layer.name + ".weight", {layer.entries, layer.features},
                                       {.kind = Init::Kind::kNormal, .scale = 1});
  return ids.graph->add("embedding", layer.name, {ids, w});
}

}  // namespace ddp
