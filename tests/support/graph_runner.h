// GraphRunner: runs the ops of a graph one after the other with the registered kernels of a
// backend, for tests of ops. Every value has a buffer of its own (views share that of their
// source), and everything a kernel should write is filled with 0xFF bytes (NaN) before each run, so
// that an element it leaves out shows.
#pragma once

#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "core/backend/backend.h"
#include "core/graph/graph.h"

namespace ddp::test {

struct RunOptions {
  int threads = 1;
  Backend* backend = nullptr;  ///< null: the CPU; must outlive the runner
  /// Writes outputs over inputs wherever definitions allow it and the input dies, as the plan does;
  /// get() of such an input then returns what overwrote it.
  bool in_place = false;
};

class GraphRunner {
 public:
  /// Prepares the kernels; `graph` must be complete and outlive the runner.
  explicit GraphRunner(const Graph& graph, RunOptions options = {});

  /// Runs all ops, or those of the forward pass only.
  void run();
  void run_forward();
  /// Poisons the outputs of one op that do not lie over an input, and runs it.
  void run_op(OpId id);

  /// The value called `name`; a test fails with an InternalError when there is none.
  ValueId id(std::string_view name) const;
  TensorView view(ValueId id) const { return views_[id.index()]; }
  /// Elements as float64, whatever the dtype.
  std::vector<double> get(ValueId id) const;
  void set(ValueId id, std::span<const double> elements);
  /// Uniform random elements in [low, high), the same in every run and (rounded) for every dtype.
  void fill_uniform(ValueId id, double low, double high, std::uint64_t seed = 1);
  /// The same for every parameter, each with its own numbers.
  void fill_parameters(double low, double high, std::uint64_t seed = 1);
  /// Sum of the contributions to a parameter's gradient.
  std::vector<double> gradient(const Parameter& parameter) const;

  StepState state;

 private:
  struct Step {
    std::vector<TensorView> inputs, outputs;
    Kernel kernel;
    OpId op;
  };
  void place_values(bool in_place);
  void run_steps(bool forward_only);
  void run_step(const Step& step);

  Buffer exact_buffer(std::size_t bytes) const;
  void write(void* to, const void* from, std::size_t bytes) const;
  void poison(std::byte* memory, std::size_t bytes) const;

  const Graph& graph_;
  Backend* backend_;
  std::vector<Buffer> buffers_;
  std::vector<bool> written_by_op_;  ///< by buffer: poisoned before each run
  std::vector<TensorView> views_;    ///< by value
  std::vector<Step> steps_;
  Buffer workspace_;
  Buffer device_state_;  ///< of a backend
};

/// Fills the inputs of a training or evaluation graph as a data set does, of which the last sample
/// is padding; buffers with numbers in [0.5, 2), and StepState with step 1.
void fill_as_a_data_set(const Graph& graph, GraphRunner& runner);

/// `n` uniform random numbers in [low, high) that floats can hold.
std::vector<double> random_numbers(std::int64_t n, double low, double high, std::uint64_t seed);

}  // namespace ddp::test
