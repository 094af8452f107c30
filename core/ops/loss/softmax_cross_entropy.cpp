// loss_i = w_i (log Σ_j exp x_ij - Σ_j t_ij x_ij), t = (1 - s) onehot + s / C.
// dx_ij = dloss_i w_i (softmax(x_i)_j - t_ij): the backward op computes softmax again, which is
// cheaper than keeping it.
#include "core/graph/differentiate.h"
#include "core/ops/loss/loss.h"

namespace ddp {
namespace {

std::vector<TensorType> infer(const OpSignature& signature) {
  const TensorType& logits = signature.inputs[0];
  const double smoothing = signature.attributes.real("label_smoothing");
  if (logits.shape.rank() != 2) throw ConfigError("the loss needs logits [samples, classes]");
  const Shape samples{logits.shape[0]};
  if (signature.inputs[1] != TensorType{samples, DType::kI32} ||
      signature.inputs[2] != TensorType{samples, DType::kF32})
    throw ConfigError("the loss needs one label (I32) and one weight (F32) for each sample");
  if (!(smoothing >= 0 && smoothing <= 1))
    throw ConfigError("label smoothing is {}, legal are 0..1", smoothing);
  return {{samples, master_dtype(logits.dtype)}};
}

void gradient(GradientBuilder& b, const OpRef& op) {
  b.give(op.input(0),
         b.emit("softmax_cross_entropy_backward", op, "backward",
                {b.grad(op.output(0)), op.input(0), op.input(1), op.input(2)}, op.attributes()));
}

const OpDefinition kSoftmaxCrossEntropy{
    .name = "softmax_cross_entropy",
    .infer = infer,
    .gradient = gradient,
    .cost =
        [](const OpSignature& s) {
          return Cost{.flops = 4 * static_cast<double>(s.inputs[0].elements()),
                      .bytes = bytes_touched(s)};
        },
};

// Inputs: dloss, logits, labels, weights.
const OpDefinition kSoftmaxCrossEntropyBackward{
    .name = "softmax_cross_entropy_backward",
    .infer = [](const OpSignature& s) { return std::vector<TensorType>{s.inputs[1]}; },
    .cost =
        [](const OpSignature& s) {
          return Cost{.flops = 6 * static_cast<double>(s.inputs[1].elements()),
                      .bytes = bytes_touched(s)};
        },
    .in_place = {{1, 0}},
};

DDP_REGISTER_OP(kSoftmaxCrossEntropy);
DDP_REGISTER_OP(kSoftmaxCrossEntropyBackward);

}  // namespace

Value softmax_cross_entropy(Value logits, Value labels, Value weights, const LossOptions& options) {
  Graph& graph = *logits.graph;
  return graph.add("softmax_cross_entropy", graph.unique_name("loss"), {logits, labels, weights},
                   {{"label_smoothing", options.label_smoothing}});
}

}  // namespace ddp
