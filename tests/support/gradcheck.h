// Checks of an op against mathematics: its gradient against central differences in float64, its
// float32 kernel against the float64 one, and one thread against several. Each check builds the
// graph itself, so that a test states only the op, its shapes and the length of its longest sum.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tests/support/graph_runner.h"

namespace ddp::test {

/// Adds the op under test to the graph and returns its output. `inputs` are parameters of the asked
/// shapes: everything that needs a gradient. Parameters that the builder makes itself (weights) are
/// checked too.
using BuildGraph = std::function<Value(Graph& graph, std::span<const Value> inputs)>;

/// From now on the checks of ops compare `backend` with float64 on the CPU, in F32 and in BF16,
/// instead of the CPU with mathematics; null: back again. It must outlive the checks.
void check_ops_on(Backend* backend);

struct CheckOptions {
  double low = -1, high = 1;  ///< range of the random parameters
  /// Sets what is not a parameter: labels, weights of samples, StepState.
  std::function<void(GraphRunner&)> prepare = [](GraphRunner&) {};
};

/// Every element of every parameter's gradient, for a random output gradient, against central
/// differences with step 1e-5, to 1e-7 of the largest gradient of that parameter (at least 1). Runs
/// out of place and in place.
void expect_gradients_match(const BuildGraph& build, const std::vector<Shape>& inputs,
                            const CheckOptions& options = {});

/// Output and gradients in float32 against float64, to epsilon(float) * longest_sum * the largest
/// magnitude of that tensor (at least 1): the bound of a sum of `longest_sum` terms in any order,
/// with one rounding a term.
void expect_float_matches_double(const BuildGraph& build, const std::vector<Shape>& inputs,
                                 int longest_sum, const CheckOptions& options = {});

/// Output and gradients of 2 and 3 threads against 1 thread, within epsilon(double) * longest_sum *
/// the largest magnitude; and the same bytes when the same number of threads runs again.
void expect_thread_counts_agree(const BuildGraph& build, const std::vector<Shape>& inputs,
                                int longest_sum, const CheckOptions& options = {});

/// The three checks above.
void expect_op_is_right(const BuildGraph& build, const std::vector<Shape>& inputs, int longest_sum,
                        const CheckOptions& options = {});

/// |actual - expected| <= relative * max(1, largest |expected|) for each element; NaN never passes.
void expect_close(std::span<const double> actual, std::span<const double> expected, double relative,
                  std::string_view what);

}  // namespace ddp::test
