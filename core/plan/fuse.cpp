#include "core/plan/fuse.h"

#include <algorithm>
#include <optional>

namespace ddp {
namespace {

bool is(const Op& op, std::string_view kind) { return op.definition->name == kind; }

/// Which ops read each value.
std::vector<std::vector<OpId>> users_of(const Graph& graph) {
  std::vector<std::vector<OpId>> users(graph.values().size());
  for (std::size_t i = 0; i < graph.ops().size(); ++i)
    for (ValueId input : graph.ops()[i].inputs) users[input.index()].push_back(OpId(i));
  return users;
}

}  // namespace

int fuse_epilogues(Graph& graph) {
  const std::vector<std::vector<OpId>> users = users_of(graph);
  std::vector<bool> absorbed(graph.ops().size());
  std::deque<Op>& ops = graph.mutable_ops();

  const auto only_user = [&](ValueId value, std::string_view kind) -> Op* {
    const auto& list = users[value.index()];
    if (list.size() != 1) return nullptr;
    Op& op = ops[list[0].index()];
    return is(op, kind) && op.inputs[0] == value ? &op : nullptr;
  };
  const auto user_of_kind = [&](ValueId value, std::string_view kind) -> std::optional<OpId> {
    for (OpId id : users[value.index()])
      if (is(ops[id.index()], kind)) return id;
    return std::nullopt;
  };
  const auto absorb = [&](const Op* op) {
    const auto found = std::ranges::find_if(ops, [op](const Op& other) { return &other == op; });
    absorbed[static_cast<std::size_t>(found - ops.begin())] = true;
  };

  for (Op& op : ops) {
    if (is(op, "conv2d") || is(op, "linear")) {
      const Op* bias = only_user(op.outputs[0], "bias");
      if (bias == nullptr) continue;
      op.inputs.push_back(bias->inputs[1]);
      op.outputs = bias->outputs;
      absorb(bias);
      if (const Op* relu = only_user(op.outputs[0], "relu")) {
        op.attributes.set("relu", std::int64_t{1});
        op.outputs = relu->outputs;
        absorb(relu);
      }
    } else if (is(op, "relu_backward")) {
      const std::optional<OpId> bias = user_of_kind(op.outputs[0], "bias_backward");
      if (!bias) continue;
      op.definition = &op_definition("bias_relu_backward");
      op.outputs.push_back(ops[bias->index()].outputs[0]);
      absorbed[bias->index()] = true;
    }
  }
  graph.erase_ops(absorbed);
  return static_cast<int>(std::ranges::count(absorbed, true));
}

}  // namespace ddp
