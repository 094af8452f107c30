#include "core/graph/graph.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/ranges.h>

#include "core/graph/layer_error.h"

namespace ddp {
namespace {

/// Elements of the largest tensor: far above what memory holds, and low enough that sizes in bytes,
/// their sums and the extents of windows stay within 64 bits.
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;

/// Whatever an extent is: a model that is written as text has any number in it. That extents are
/// positive is checked by those that know what they mean.
void check_size(std::string_view name, const Shape& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape.extents()) {
    const std::int64_t most = kMostElements / elements;
    if (extent > most || extent < -most)
      throw ConfigError("{} would be {}, but a tensor has at most {} elements", name,
                        shape.to_string(), kMostElements);
    elements *= std::max(std::abs(extent), std::int64_t{1});
  }
}

}  // namespace

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::kForward: return "forward";
    case Phase::kBackward: return "backward";
    case Phase::kOptimizer: return "optimizer";
  }
  return "?";
}

const TensorType& Value::type() const { return graph->value(id).type; }
const Op& OpRef::op() const { return graph_->op(id_); }

std::string Graph::scoped(std::string_view name) const {
  std::string path;
  for (const std::string& part : scope_) path += part + '.';
  return path + std::string(name);
}

std::string Graph::unique_name(std::string_view prefix) {
  const std::string path = scoped(prefix);
  auto found = std::ranges::find(counters_, path, &std::pair<std::string, int>::first);
  if (found == counters_.end()) found = counters_.insert(counters_.end(), {path, 0});
  return fmt::format("{}{}", prefix, ++found->second);
}

Value Graph::input(std::string name, TensorType type) {
  check_size(fmt::format("input '{}'", name), type.shape);
  values_.push_back({std::move(name), type, ValueRole::kInput, {}});
  return {this, ValueId(values_.size() - 1)};
}

Value Graph::parameter(std::string_view name, const TensorType& type, Init init, FileLayout file) {
  std::string path = scoped(name);
  const Shape& shape = type.shape;
  if (const auto found = std::ranges::find(parameters_, path, &Parameter::name);
      found != parameters_.end()) {
    const TensorType& known = value(found->value).type;
    if (known.shape != shape)
      throw ConfigError("parameter '{}' is used with the shapes {} and {}", path,
                        known.shape.to_string(), shape.to_string());
    if (known.dtype != type.dtype)
      throw ConfigError("parameter '{}' is used as {} and as {}", path, name_of(known.dtype),
                        name_of(type.dtype));
    return {this, found->value};
  }
  check_size(fmt::format("parameter '{}'", path), shape);
  if (file.order.empty()) file = {.view = shape, .order = {}, .file = shape};
  DDP_CHECK(file.file.elements() == shape.elements() && file.view.elements() == shape.elements(),
            "the file layout of '{}' has another size than its shape {}", path, shape.to_string());
  values_.push_back({path, type, ValueRole::kParameter, {}});
  const ValueId id(values_.size() - 1);
  parameters_.push_back({.name = path,
                         .value = id,
                         .init = init,
                         .file = std::move(file),
                         .decay = shape.rank() >= 2,
                         .contributions = {}});
  return {this, id};
}

RunningStatistics& Graph::running_statistics(std::string_view name, std::int64_t channels,
                                             double momentum) {
  const std::string path = scoped(name);
  if (std::ranges::find(statistics_, path, &RunningStatistics::name) != statistics_.end())
    throw ConfigError("two batch-normalised layers are called '{}'", path);
  const TensorType type{Shape{channels}, master_dtype()};
  const auto buffer = [&](std::string_view which) {
    values_.push_back({fmt::format("{}.{}", path, which), type, ValueRole::kBuffer, {}});
    return ValueId(values_.size() - 1);
  };
  const ValueId mean = buffer("running_mean"), variance = buffer("running_var");
  return statistics_.emplace_back(RunningStatistics{
      .name = path, .mean = mean, .variance = variance, .momentum = momentum, .contribution = {}});
}

std::vector<Value> Graph::add_op(std::string_view definition, std::string_view name,
                                 const std::vector<Value>& inputs, Attributes attributes) {
  const OpDefinition& kind = op_definition(definition);
  Op op{.name = scoped(name),
        .definition = &kind,
        .inputs = {},
        .outputs = {},
        .attributes = std::move(attributes),
        .phase = phase_,
        .block = phase_ == Phase::kForward ? block_ : kNoBlock};
  OpSignature signature{.inputs = {}, .outputs = {}, .attributes = op.attributes};
  for (const Value& input : inputs) {
    DDP_CHECK(input.graph == this, "op '{}' takes a value of another graph", op.name);
    op.inputs.push_back(input.id);
    signature.inputs.push_back(input.type());
  }
  try {
    signature.outputs = kind.infer(signature);
    for (const TensorType& output : signature.outputs) check_size("its output", output.shape);
  } catch (const ConfigError& error) {
    std::vector<std::string> shapes;
    for (const Value& input : inputs)
      shapes.push_back(value(input.id).name + " " + input.shape().to_string());
    throw LayerError(op.name, definition, error.what(), fmt::format("{}", fmt::join(shapes, ", ")));
  }
  std::vector<Value> outputs;
  for (const TensorType& type : signature.outputs) {
    const std::string suffix =
        signature.outputs.size() > 1 ? fmt::format(":{}", outputs.size()) : "";
    values_.push_back({op.name + suffix, type, ValueRole::kIntermediate, OpId(ops_.size())});
    op.outputs.push_back(ValueId(values_.size() - 1));
    outputs.push_back({this, op.outputs.back()});
  }
  ops_.push_back(std::move(op));
  return outputs;
}

Value Graph::add(std::string_view definition, std::string_view name,
                 const std::vector<Value>& inputs, Attributes attributes) {
  const std::vector<Value> outputs = add_op(definition, name, inputs, std::move(attributes));
  DDP_CHECK(outputs.size() == 1, "op '{}' has {} outputs where one is expected", name,
            outputs.size());
  return outputs[0];
}

std::int64_t Graph::parameter_elements() const {
  std::int64_t n = 0;
  for (const Parameter& parameter : parameters_) n += value(parameter.value).type.elements();
  return n;
}

OpSignature Graph::signature(const Op& op) const {
  OpSignature signature{.inputs = {}, .outputs = {}, .attributes = op.attributes};
  for (ValueId id : op.inputs) signature.inputs.push_back(value(id).type);
  for (ValueId id : op.outputs) signature.outputs.push_back(value(id).type);
  return signature;
}

ValueId Graph::copy_value(ValueId id, std::string_view name_suffix) {
  ValueInfo copy = value(id);
  copy.name += name_suffix;
  values_.push_back(std::move(copy));
  return ValueId(values_.size() - 1);
}

void Graph::replace_ops(std::deque<Op> ops) {
  ops_ = std::move(ops);
  for (ValueInfo& value : values_) value.producer = {};
  for (std::size_t i = 0; i < ops_.size(); ++i)
    for (ValueId output : ops_[i].outputs) values_[output.index()].producer = OpId(i);
}

void Graph::erase_ops(const std::vector<bool>& erased) {
  std::deque<Op> kept;
  for (std::size_t i = 0; i < ops_.size(); ++i)
    if (!erased[i]) kept.push_back(std::move(ops_[i]));
  replace_ops(std::move(kept));
}

const Parameter* Graph::parameter_of(ValueId id) const {
  const auto found = std::ranges::find(parameters_, id, &Parameter::value);
  return found == parameters_.end() ? nullptr : &*found;
}

}  // namespace ddp
