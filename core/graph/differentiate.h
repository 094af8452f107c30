// Reverse-mode differentiation of a graph: adds the backward ops in reverse order of the forward
// ops, so that the moment at which each parameter's gradient is final is known when the plan is
// built.
#pragma once

#include <map>
#include <vector>

#include "core/graph/graph.h"

namespace ddp {

/// What a gradient rule works with. For one forward op, it reads the gradients of the outputs and
/// gives the inputs theirs.
class GradientBuilder {
 public:
  GradientBuilder(Graph& graph, std::vector<bool> wanted)
      : graph_(graph), wanted_(std::move(wanted)) {}

  /// Gradient of the loss with respect to a forward output: the sum of all that its users gave.
  Value grad(Value output);
  /// True when `input` leads to a parameter, so that its gradient is needed.
  bool wants(Value input) const { return wanted_[input.id.index()]; }
  /// Gives `input` a contribution of the same type. Contributions to parameters are listed in order
  /// of arrival.
  void give(Value input, Value gradient);
  /// Emits a backward op with one output, named "<forward op>.<suffix>".
  Value emit(std::string_view definition, const OpRef& forward, std::string_view suffix,
             const std::vector<Value>& inputs, Attributes attributes = {});
  /// The same for an op with any number of outputs.
  std::vector<Value> emit_all(std::string_view definition, const OpRef& forward,
                              std::string_view suffix, const std::vector<Value>& inputs,
                              Attributes attributes = {});

 private:
  friend void differentiate(Graph&, Value, Value);
  Graph& graph_;
  std::vector<bool> wanted_;
  std::map<ValueId, std::vector<Value>> given_;
};

/// Adds the backward ops for `output`, whose gradient is `seed` (same type). Afterwards every
/// parameter that `output` depends on lists its contributions; a parameter that never gets one is
/// an InternalError with its name.
void differentiate(Graph& graph, Value output, Value seed);

}  // namespace ddp
