// Graph: values and ops of a model, forward first, then (after differentiate) backward, in an order
// that can be run. It is data: models fill it through builder functions, passes rewrite it, the
// plan is made from it. Values are cheap handles, so that a model reads like the formula:
// relu(bias(conv2d(x, {...}), "conv1")).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/types.h"
#include "core/graph/op_definition.h"

namespace ddp {

class Graph;

enum class ValueRole : std::uint8_t { kInput, kParameter, kBuffer, kIntermediate };
enum class Phase : std::uint8_t { kForward, kBackward, kOptimizer };
std::string_view name_of(Phase phase);

/// Handle of one value; copyable, valid as long as its graph.
struct Value {
  Graph* graph = nullptr;
  ValueId id;

  const TensorType& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  bool operator==(const Value&) const = default;
};

/// How a parameter starts.
struct Init {
  enum class Kind : std::uint8_t { kZero, kOne, kUniform, kNormal } kind = Kind::kZero;
  double scale = 0;  ///< bound of the uniform, standard deviation of the normal distribution
};

/// How a parameter stands in a file: memory is read as `view`, its axes are permuted by `order`
/// (file axis i is view axis order[i]), and the result has the shape `file`. Empty order: as in
/// memory.
struct FileLayout {
  Shape view;
  std::vector<int> order;
  Shape file;
};

struct Parameter {
  std::string name;  ///< as in weight files: "conv1.weight"
  ValueId value;
  Init init;
  FileLayout file;
  bool decay = true;  ///< weight decay by default: matrices and filters, not biases
  std::vector<ValueId> contributions;  ///< gradients in the order in which they become final;
                                       ///< filled by differentiate
};

/// Running averages of a batch-normalised layer: buffers that training steps update and evaluation
/// reads. Files hold them as "<name>.running_mean" and "<name>.running_var".
struct RunningStatistics {
  std::string name;        ///< of the layer: "layer1.0.bn1"
  ValueId mean, variance;  ///< kBuffer values [C]
  double momentum = 0.1;   ///< weight of a step's own statistics
  ValueId contribution;  ///< [2C + 1] of one micro-step: Σ count · mean, Σ count · variance, Σ
                         ///< count; invalid in evaluation graphs
};

struct ValueInfo {
  std::string name;
  TensorType type;
  ValueRole role = ValueRole::kIntermediate;
  OpId producer;  ///< invalid for inputs, parameters and buffers
};

/// Number of the block that an op belongs to; ops outside of all blocks have none.
inline constexpr int kNoBlock = -1;

struct Op {
  std::string name;  ///< scope path: "conv1", "conv1.backward_data"
  const OpDefinition* definition = nullptr;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attributes attributes;
  Phase phase = Phase::kForward;
  int block = kNoBlock;  ///< what recomputation runs again as one
};

/// An op seen from its definition: its values as handles.
class OpRef {
 public:
  OpRef(Graph& graph, OpId id) : graph_(&graph), id_(id) {}
  const Op& op() const;
  const std::string& name() const { return op().name; }
  const Attributes& attributes() const { return op().attributes; }
  Value input(int i) const { return {graph_, op().inputs[static_cast<std::size_t>(i)]}; }
  Value output(int i) const { return {graph_, op().outputs[static_cast<std::size_t>(i)]}; }
  int input_count() const { return static_cast<int>(op().inputs.size()); }

 private:
  Graph* graph_;
  OpId id_;
};

class Graph {
 public:
  /// `compute` is the type of activations and of the parameters that meet them: kF32, kBF16, or
  /// kF64 for checks.
  explicit Graph(DType compute) : compute_(compute) {}
  Graph(Graph&&) = delete;  // values point here

  DType compute_dtype() const { return compute_; }
  DType master_dtype() const { return ddp::master_dtype(compute_); }

  /// Adds a value that the host fills before each micro-step.
  Value input(std::string name, TensorType type);
  /// Adds a parameter of the compute type named "<scope>.<name>". An existing name with the same
  /// type is shared (tied weights).
  Value parameter(std::string_view name, const Shape& shape, Init init, FileLayout file = {}) {
    return parameter(name, {shape, compute_}, init, std::move(file));
  }
  /// The same of another type: scales of normalisation are of the master type.
  Value parameter(std::string_view name, const TensorType& type, Init init, FileLayout file = {});
  /// Adds the running statistics of layer `name` of `channels` channels; a name that exists is a
  /// ConfigError.
  RunningStatistics& running_statistics(std::string_view name, std::int64_t channels,
                                        double momentum);
  /// Adds an op; output types come from its definition. A shape that does not fit is a ConfigError
  /// naming the op.
  std::vector<Value> add_op(std::string_view definition, std::string_view name,
                            const std::vector<Value>& inputs, Attributes attributes = {});
  /// The same for an op with one output.
  Value add(std::string_view definition, std::string_view name, const std::vector<Value>& inputs,
            Attributes attributes = {});

  /// A fresh name "<prefix><n>" for an op that the model did not name: relu1, relu2, …
  std::string unique_name(std::string_view prefix);
  std::string scoped(std::string_view name) const;

  const std::deque<ValueInfo>& values() const { return values_; }
  const std::deque<Op>& ops() const { return ops_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const ValueInfo& value(ValueId id) const { return values_[id.index()]; }
  const Op& op(OpId id) const { return ops_[id.index()]; }
  std::deque<Op>& mutable_ops() { return ops_; }
  std::vector<Parameter>& mutable_parameters() { return parameters_; }
  const std::deque<RunningStatistics>& statistics() const { return statistics_; }
  int block_count() const { return blocks_; }
  std::int64_t parameter_elements() const;
  OpSignature signature(const Op& op) const;
  /// The parameter behind a value, or null.
  const Parameter* parameter_of(ValueId id) const;

  /// A fresh value like `id`, for a copy of the op that makes it.
  ValueId copy_value(ValueId id, std::string_view name_suffix);
  /// Puts `ops` in the place of all ops.
  void replace_ops(std::deque<Op> ops);
  /// Removes the ops marked in `erased` (by position); no other op may need their outputs.
  void erase_ops(const std::vector<bool>& erased);
  void set_phase(Phase phase) { phase_ = phase; }

 private:
  friend class Scope;
  friend class Block;
  DType compute_;
  Phase phase_ = Phase::kForward;
  std::deque<ValueInfo> values_;  // deque: references stay valid while ops are added
  std::deque<Op> ops_;
  std::vector<Parameter> parameters_;
  std::deque<RunningStatistics> statistics_;
  int block_ = kNoBlock, blocks_ = 0;
  std::vector<std::string> scope_;
  std::vector<std::pair<std::string, int>> counters_;
};

/// Names inside the scope's lifetime get its prefix: Scope s(g, "layer1"); … "layer1.conv1".
class Scope {
 public:
  Scope(Graph& graph, std::string name) : graph_(graph) {
    graph_.scope_.push_back(std::move(name));
  }
  ~Scope() { graph_.scope_.pop_back(); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Graph& graph_;
};

/// Ops added in its lifetime form one block, a stretch of the network that recomputation can run
/// again in backward instead of keeping what it computed. Blocks do not nest.
class Block {
 public:
  explicit Block(Graph& graph) : graph_(graph) { graph_.block_ = graph_.blocks_++; }
  ~Block() { graph_.block_ = kNoBlock; }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

 private:
  Graph& graph_;
};

}  // namespace ddp
