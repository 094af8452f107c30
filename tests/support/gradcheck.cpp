#include "tests/support/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include <gtest/gtest.h>

#include "core/graph/differentiate.h"

namespace ddp::test {
namespace {

Backend* checked_backend = nullptr;

/// The op under test with its backward ops.
struct Differentiated {
  Graph graph;
  Value output, seed;

  Differentiated(const BuildGraph& build, const std::vector<Shape>& inputs, DType dtype)
      : graph(dtype) {
    std::vector<Value> values;
    for (const Shape& shape : inputs)
      values.push_back(graph.parameter(fmt::format("input{}", values.size()), shape, {}));
    output = build(graph, values);
    seed = graph.input("seed", output.type());
    differentiate(graph, output, seed);
  }
};

GraphRunner prepared_runner(const Differentiated& test, RunOptions run,
                            const CheckOptions& options) {
  GraphRunner runner(test.graph, run);
  runner.fill_parameters(options.low, options.high);
  runner.fill_uniform(test.seed.id, -1, 1, 1000);
  options.prepare(runner);
  return runner;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Output, then the gradient of each parameter; labels say which.
std::vector<std::vector<double>> results(const Differentiated& test, GraphRunner& runner) {
  const StepState before = runner.state;
  runner.run();
  runner.state = before;
  std::vector<std::vector<double>> all{runner.get(test.output.id)};
  for (const Parameter& parameter : test.graph.parameters())
    all.push_back(runner.gradient(parameter));
  return all;
}

void expect_gradients_close(const Differentiated& test,
                            const std::vector<std::vector<double>>& actual,
                            const std::vector<std::vector<double>>& expected, double relative,
                            std::string_view what) {
  for (std::size_t i = 1; i < actual.size(); ++i)
    expect_close(actual[i], expected[i], relative,
                 fmt::format("gradient of {}, {}", test.graph.parameters()[i - 1].name, what));
}

void expect_results_close(const Differentiated& test,
                          const std::vector<std::vector<double>>& actual,
                          const std::vector<std::vector<double>>& expected, double relative,
                          std::string_view what) {
  expect_close(actual[0], expected[0], relative, fmt::format("output, {}", what));
  expect_gradients_close(test, actual, expected, relative, what);
}

/// Copies parameters and inputs, which the backend's type may have rounded.
void copy_given_values(const Graph& graph, const GraphRunner& from, GraphRunner& to) {
  for (std::size_t i = 0; i < graph.values().size(); ++i)
    if (graph.values()[i].role != ValueRole::kIntermediate)
      to.set(ValueId(i), from.get(ValueId(i)));
}

/// Output and gradients of the checked backend against those of the CPU in float64, from the same
/// numbers. A BF16 result is rounded once by each op on the way to it; chains in tests are of at
/// most four.
void expect_backend_matches_double(const BuildGraph& build, const std::vector<Shape>& inputs,
                                   int longest_sum, const CheckOptions& options) {
  constexpr double kRoundingsOfBf16 = 4 * 0x1p-8;
  for (const DType dtype : {DType::kF32, DType::kBF16})
    for (const bool in_place : {false, true}) {
      const Differentiated test(build, inputs, dtype), reference(build, inputs, DType::kF64);
      GraphRunner runner =
          prepared_runner(test, {.backend = checked_backend, .in_place = in_place}, options);
      GraphRunner exact = prepared_runner(reference, {}, options);
      copy_given_values(test.graph, runner, exact);
      const double relative =
          (dtype == DType::kBF16 ? kRoundingsOfBf16 : 0) +
          std::numeric_limits<float>::epsilon() * static_cast<double>(longest_sum);
      const std::string what =
          fmt::format("{} on {} against float64{}", name_of(dtype), checked_backend->device_name(),
                      in_place ? ", in place" : "");
      const auto actual = results(test, runner), expected = results(reference, exact);
      // In place, a backward op may have overwritten the output.
      if (in_place)
        expect_gradients_close(test, actual, expected, relative, what);
      else
        expect_results_close(test, actual, expected, relative, what);
    }
}

}  // namespace

void check_ops_on(Backend* backend) { checked_backend = backend; }

void expect_close(std::span<const double> actual, std::span<const double> expected, double relative,
                  std::string_view what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double scale = 1;
  for (double e : expected) scale = std::max(scale, std::abs(e));
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_LE(std::abs(actual[i] - expected[i]), relative * scale)
        << what << ", element " << i << ": " << actual[i] << " instead of " << expected[i];
}

void expect_gradients_match(const BuildGraph& build, const std::vector<Shape>& inputs,
                            const CheckOptions& options) {
  if (checked_backend != nullptr) return;
  constexpr double kStep = 1e-5;
  constexpr double kTolerance = 1e-7;
  const Differentiated test(build, inputs, DType::kF64);
  for (const bool in_place : {false, true}) {
    GraphRunner runner = prepared_runner(test, {.threads = 1, .in_place = in_place}, options);
    const std::vector<std::vector<double>> analytic = results(test, runner);
    const std::vector<double> seed = runner.get(test.seed.id);
    const StepState before = runner.state;
    const auto loss = [&] {
      runner.run_forward();
      runner.state = before;
      return dot(seed, runner.get(test.output.id));
    };
    for (std::size_t p = 0; p < test.graph.parameters().size(); ++p) {
      const Parameter& parameter = test.graph.parameters()[p];
      const std::span<double> elements = runner.view(parameter.value).span<double>();
      std::vector<double> numeric(elements.size());
      for (std::size_t i = 0; i < elements.size(); ++i) {
        const double kept = elements[i];
        elements[i] = kept + kStep;
        const double above = loss();
        elements[i] = kept - kStep;
        const double below = loss();
        elements[i] = kept;
        numeric[i] = (above - below) / (2 * kStep);
      }
      expect_close(analytic[p + 1], numeric, kTolerance,
                   fmt::format("gradient of {}{}", parameter.name, in_place ? ", in place" : ""));
    }
  }
}

void expect_float_matches_double(const BuildGraph& build, const std::vector<Shape>& inputs,
                                 int longest_sum, const CheckOptions& options) {
  if (checked_backend != nullptr)
    return expect_backend_matches_double(build, inputs, longest_sum, options);
  const Differentiated single(build, inputs, DType::kF32);
  const Differentiated reference(build, inputs, DType::kF64);
  GraphRunner single_runner = prepared_runner(single, {}, options);
  GraphRunner reference_runner = prepared_runner(reference, {}, options);
  expect_results_close(single, results(single, single_runner), results(reference, reference_runner),
                       std::numeric_limits<float>::epsilon() * static_cast<double>(longest_sum),
                       "float32 against float64");
}

void expect_thread_counts_agree(const BuildGraph& build, const std::vector<Shape>& inputs,
                                int longest_sum, const CheckOptions& options) {
  if (checked_backend != nullptr) return;
  const Differentiated test(build, inputs, DType::kF64);
  GraphRunner one = prepared_runner(test, {.threads = 1}, options);
  const std::vector<std::vector<double>> expected = results(test, one);
  for (const int threads : {1, 2, 3}) {
    GraphRunner several = prepared_runner(test, {.threads = threads}, options);
    const std::vector<std::vector<double>> actual = results(test, several);
    expect_results_close(test, actual, expected,
                         std::numeric_limits<double>::epsilon() * longest_sum,
                         fmt::format("{} threads", threads));
    EXPECT_EQ(results(test, several), actual)
        << threads << " threads give other bytes in a second run";
  }
}

void expect_op_is_right(const BuildGraph& build, const std::vector<Shape>& inputs, int longest_sum,
                        const CheckOptions& options) {
  expect_gradients_match(build, inputs, options);
  expect_float_matches_double(build, inputs, longest_sum, options);
  expect_thread_counts_agree(build, inputs, longest_sum, options);
}

}  // namespace ddp::test
