#include "core/graph/differentiate.h"

#include <algorithm>

namespace ddp {

Value GradientBuilder::grad(Value output) {
  std::vector<Value>& parts = given_[output.id];
  DDP_CHECK(!parts.empty(), "value '{}' has no gradient", graph_.value(output.id).name);
  while (parts.size() > 1) {  // several users: their gradients add up
    const Value last = parts.back();
    parts.pop_back();
    const std::string name = graph_.unique_name(graph_.value(output.id).name + ".sum_gradients");
    parts.back() = graph_.add("add", name, {parts.back(), last});
  }
  return parts[0];
}

void GradientBuilder::give(Value input, Value gradient) {
  DDP_CHECK(input.type() == gradient.type(), "the gradient of '{}' has the shape {}, the value {}",
            graph_.value(input.id).name, gradient.shape().to_string(), input.shape().to_string());
  given_[input.id].push_back(gradient);
  for (Parameter& parameter : graph_.mutable_parameters())
    if (parameter.value == input.id) parameter.contributions.push_back(gradient.id);
}

Value GradientBuilder::emit(std::string_view definition, const OpRef& forward,
                            std::string_view suffix, const std::vector<Value>& inputs,
                            Attributes attributes) {
  return graph_.add(definition, fmt::format("{}.{}", forward.name(), suffix), inputs,
                    std::move(attributes));
}

std::vector<Value> GradientBuilder::emit_all(std::string_view definition, const OpRef& forward,
                                             std::string_view suffix,
                                             const std::vector<Value>& inputs,
                                             Attributes attributes) {
  return graph_.add_op(definition, fmt::format("{}.{}", forward.name(), suffix), inputs,
                       std::move(attributes));
}

void differentiate(Graph& graph, Value output, Value seed) {
  std::vector<bool> wanted(graph.values().size());
  for (const Parameter& parameter : graph.parameters()) wanted[parameter.value.index()] = true;
  const std::size_t forward_ops = graph.ops().size();
  for (std::size_t i = 0; i < forward_ops; ++i) {
    const Op& op = graph.ops()[i];
    if (op.definition->gradient != nullptr &&
        std::ranges::any_of(op.inputs, [&](ValueId id) { return wanted[id.index()]; }))
      for (ValueId id : op.outputs) wanted[id.index()] = true;
  }

  GradientBuilder builder(graph, wanted);
  graph.set_phase(Phase::kBackward);
  builder.give(output, seed);
  for (std::size_t i = forward_ops; i-- > 0;) {
    const OpId id(i);
    const bool reached = std::ranges::any_of(graph.op(id).outputs, [&](ValueId value) {
      return builder.given_.contains(value) && wanted[value.index()];
    });
    if (!reached) continue;
    const OpRef op(graph, id);
    graph.op(id).definition->gradient(builder, op);
  }
  graph.set_phase(Phase::kForward);

  for (const Parameter& parameter : graph.parameters())
    DDP_CHECK(!parameter.contributions.empty(),
              "parameter '{}' never gets a gradient: the loss does not depend on it",
              parameter.name);
}

}  // namespace ddp
