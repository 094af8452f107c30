// Every op of every model, fused as the plan has it, forward and backward: on the GPU against the
// CPU in float64. Each op gets the GPU's own inputs, so that no error is passed on, and the
// tolerance is that of one op.
#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/gpu/gpu.h"
#include "tests/support/gradcheck.h"
#include "tests/support/training/training.h"

namespace ddp::test {
namespace {

/// What one op may be wrong by, relative to the largest element: the rounding of float for each
/// term of its sums, and that of the type that it writes and, of TF32, that its products read.
double tolerance(const Op& op, const OpSignature& signature) {
  double elements = 0, rounding = 0;
  for (const TensorType& output : signature.outputs)
    elements = std::max(elements, static_cast<double>(output.elements()));
  for (const TensorType& output : signature.outputs)
    if (output.dtype == DType::kBF16) rounding = 0x1p-8;
  const double terms = elements > 0 ? op.definition->cost(signature).flops / elements
                                    : op.definition->cost(signature).flops;
  return rounding + std::numeric_limits<float>::epsilon() * (8 + terms);
}

bool is_real(DType dtype) { return dtype == DType::kF32 || dtype == DType::kBF16; }

void expect_ops_match(const Graph& graph, const Graph& exact_graph) {
  ASSERT_EQ(graph.ops().size(), exact_graph.ops().size());
  GraphRunner runner(graph, {.backend = &gpu()}), exact(exact_graph);
  for (GraphRunner* side : {&runner, &exact}) side->fill_parameters(-0.3, 0.3);
  fill_as_a_data_set(graph, runner);
  fill_as_a_data_set(exact_graph, exact);
  for (std::size_t i = 0; i < graph.ops().size(); ++i) {
    const Op& op = graph.ops()[i];
    if (op.definition->is_view) continue;
    SCOPED_TRACE(fmt::format(
        "op {} ({}), {} {}", op.name, op.definition->name,
        graph.signature(op).inputs.empty() ? "" : graph.signature(op).inputs[0].shape.to_string(),
        op.attributes.to_string()));
    for (const ValueId input : op.inputs) exact.set(input, runner.get(input));
    runner.run_op(OpId(i));
    exact.run_op(OpId(i));
    const double relative = tolerance(op, graph.signature(op));
    for (const ValueId output : op.outputs) {
      const bool real = is_real(graph.value(output).type.dtype);
      expect_close(runner.get(output), exact.get(output), real ? relative : 0,
                   graph.value(output).name);
    }
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_NEAR(runner.state.loss_sum, exact.state.loss_sum, 1e-5 * std::abs(exact.state.loss_sum));
  EXPECT_EQ(runner.state.weight_sum, exact.state.weight_sum);
  EXPECT_EQ(runner.state.correct_top1, exact.state.correct_top1);
  EXPECT_EQ(runner.state.correct_top5, exact.state.correct_top5);
  EXPECT_EQ(runner.state.nonfinite, exact.state.nonfinite);
}

struct Case {
  std::string model;
  Shape image;
  std::int64_t batch = 6;
};
void PrintTo(const Case& test, std::ostream* out) {
  *out << test.model << ", images " << test.image.to_string() << ", batch " << test.batch;
}

class ModelOps : public ::testing::TestWithParam<Case> {};

TEST_P(ModelOps, OfTrainingAndEvaluationAgreeWithFloat64InEachType) {
  const Case& test = GetParam();
  const auto program = [&](DType dtype, Backend* backend) {
    TrainingRun run{.model = test.model, .global_batch = test.batch, .compute = dtype};
    run.image = test.image;
    run.backend = backend;
    const auto channels = static_cast<std::size_t>(test.image[2]);
    DatasetInfo data;
    data.image = test.image;
    data.classes = 10;
    data.mean = std::vector<double>(channels, 0.4);
    data.stddev = std::vector<double>(channels, 0.3);
    ProgramOptions options = program_options(run, data);
    options.evaluation_batch = test.batch;
    return Program(std::move(options));
  };
  const Program exact = program(DType::kF64, nullptr);
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    SCOPED_TRACE(name_of(dtype));
    const Program on_gpu = program(dtype, &gpu());
    expect_ops_match(on_gpu.graph(), exact.graph());
    if (::testing::Test::HasFatalFailure()) return;
    expect_ops_match(on_gpu.evaluation_graph(), exact.evaluation_graph());
    if (::testing::Test::HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, ModelOps,
    ::testing::Values(Case{"mlp", {12, 12, 1}, 13}, Case{"convnet", {28, 28, 1}, 7},
                      Case{"convnet", {17, 11, 3}, 5}, Case{"resnet18", {32, 32, 3}, 6},
                      Case{"resnet50", {64, 64, 3}, 4}),
    [](const auto& tested) { return fmt::format("{}_{}", tested.param.model, tested.index); });

}  // namespace
}  // namespace ddp::test
