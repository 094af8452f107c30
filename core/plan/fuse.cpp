#include "core/plan/fuse.h"

#include <algorithm>

#include "core/graph/users.h"

namespace ddp {
namespace {

bool is(const Op& op, std::string_view kind) { return op.definition->name == kind; }

class Fusion {
 public:
  explicit Fusion(Graph& graph)
      : graph_(graph),
        ops_(graph.mutable_ops()),
        users_(users_of(graph)),
        absorbed_(graph.ops().size()) {}

  int run() {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (absorbed_[i]) continue;
      Op& op = ops_[i];
      if (is(op, "conv2d") || is(op, "linear"))
        take_bias(op);
      else if (is(op, "batchnorm") || is(op, "batchnorm_inference"))
        take_add_and_relu(OpId(i));
      else if (is(op, "relu_backward"))
        join_bias_backward(op);
    }
    graph_.erase_ops(absorbed_);
    return static_cast<int>(std::ranges::count(absorbed_, true));
  }

 private:
  Op& op(OpId id) { return ops_[id.index()]; }
  void absorb(OpId id) { absorbed_[id.index()] = true; }

  /// The op of this kind that reads `value`, if it is the only one that does.
  OpId only_user(ValueId value, std::string_view kind) const {
    const auto& list = users_[value.index()];
    return list.size() == 1 && is(ops_[list[0].index()], kind) ? list[0] : OpId();
  }
  /// The first op of this kind that reads `value` as its input `input`.
  OpId user(ValueId value, std::string_view kind, std::size_t input) const {
    for (const OpId id : users_[value.index()])
      if (const Op& op = ops_[id.index()]; is(op, kind) && op.inputs[input] == value) return id;
    return {};
  }

  bool take_relu(Op& op) {
    const OpId relu = only_user(op.outputs[0], "relu");
    if (!relu.valid()) return false;
    op.attributes.set("relu", std::int64_t{1});
    op.outputs[0] = this->op(relu).outputs[0];
    absorb(relu);
    return true;
  }

  void take_bias(Op& op) {
    const OpId bias = only_user(op.outputs[0], "bias");
    if (!bias.valid()) return;
    op.inputs.push_back(this->op(bias).inputs[1]);
    op.outputs = this->op(bias).outputs;
    absorb(bias);
    take_relu(op);
  }

  void join_bias_backward(Op& relu_backward) {
    const OpId bias = user(relu_backward.outputs[0], "bias_backward", 0);
    if (!bias.valid()) return;
    relu_backward.definition = &op_definition("bias_relu_backward");
    relu_backward.outputs.push_back(op(bias).outputs[0]);
    absorb(bias);
  }

  void take_add_and_relu(OpId id) {
    Op& norm = op(id);
    if (const OpId add = only_user(norm.outputs[0], "add"); add.valid()) {
      // What is added has to be there when the normalisation runs.
      const Op& sum = op(add);
      const ValueId addend = sum.inputs[sum.inputs[0] == norm.outputs[0] ? 1 : 0];
      const OpId producer = graph_.value(addend).producer;
      if (!producer.valid() || producer.index() < id.index()) {
        norm.inputs.push_back(addend);
        norm.outputs[0] = sum.outputs[0];
        absorb(add);
      }
    }
    if (take_relu(norm) && is(norm, "batchnorm")) join_batchnorm_backward(norm);
  }

  void join_batchnorm_backward(const Op& norm) {
    const ValueId y = norm.outputs[0];
    const OpId relu = user(y, "relu_backward", 1);
    if (!relu.valid()) return;
    const ValueId dz = op(relu).outputs[0];
    const auto& readers = users_[dz.index()];
    // The gradient of the sum comes from this op from now on, so nobody may need it earlier.
    const OpId first = readers.empty() ? OpId() : readers[0];
    if (!first.valid() || !is(op(first), "batchnorm_backward") ||
        op(first).inputs[1] != norm.inputs[0])
      return;
    Op& backward = op(first);
    backward.inputs[0] = op(relu).inputs[0];
    backward.inputs.push_back(y);
    backward.attributes.set("relu", std::int64_t{1});
    if (readers.size() > 1) {
      backward.attributes.set("residual", std::int64_t{1});
      backward.outputs.push_back(dz);
    }
    absorb(relu);
  }

  Graph& graph_;
  std::deque<Op>& ops_;
  std::vector<std::vector<OpId>> users_;  ///< before fusion: ops that are absorbed are still in it
  std::vector<bool> absorbed_;
};

}  // namespace

int fuse_epilogues(Graph& graph) { return Fusion(graph).run(); }

}  // namespace ddp
