// Whole training runs on one GPU: against the CPU from the same weights, against themselves, in
// each precision.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/gpu/gpu.h"
#include "tests/support/training/training.h"

namespace ddp::test {
namespace {

TrainingRun run_of(const std::string& model, DType dtype, Backend* backend) {
  const bool small = model == "mlp" || model == "convnet";
  TrainingRun run{.model = model, .global_batch = 16, .steps = 3, .compute = dtype};
  run.backend = backend;
  // A rate at which the loss falls: where it does not, batch norm lets rounding errors grow.
  run.learning_rate = small ? 0.02 : 0.0005;
  run.image = small ? Shape{20, 20, 1} : Shape{32, 32, 3};
  return run;
}

void expect_losses_near(const TrainingOutcome& actual, const TrainingOutcome& expected,
                        double relative) {
  ASSERT_EQ(actual.steps.size(), expected.steps.size());
  for (std::size_t i = 0; i < actual.steps.size(); ++i) {
    EXPECT_NEAR(actual.steps[i].loss, expected.steps[i].loss, relative * expected.steps[i].loss)
        << "step " << i + 1;
    EXPECT_NEAR(actual.steps[i].learning_rate, expected.steps[i].learning_rate, 1e-12);
    EXPECT_EQ(actual.steps[i].samples, expected.steps[i].samples);
  }
  EXPECT_EQ(actual.evaluation.samples, expected.evaluation.samples);
}

class GpuTraining : public ::testing::TestWithParam<std::string> {};

TEST_P(GpuTraining, InF32GivesTheLossesOfTheCpu) {
  const TrainingOutcome exact = train(run_of(GetParam(), DType::kF64, nullptr));
  const TrainingOutcome cpu = train(run_of(GetParam(), DType::kF32, nullptr));
  const TrainingOutcome on_gpu = train(run_of(GetParam(), DType::kF32, &gpu()));
  ASSERT_EQ(on_gpu.steps.size(), exact.steps.size());
  for (std::size_t i = 0; i < exact.steps.size(); ++i) {
    // Where batch norm makes rounding errors grow, the CPU's own are the measure.
    const double expected = exact.steps[i].loss;
    const double rounding = std::abs(cpu.steps[i].loss - expected);
    EXPECT_NEAR(on_gpu.steps[i].loss, expected, std::max(1e-5 * expected, 4 * rounding))
        << "step " << i + 1;
  }
}

TEST_P(GpuTraining, InBf16StaysCloseToFloat64) {
  const TrainingOutcome cpu = train(run_of(GetParam(), DType::kF64, nullptr));
  const TrainingOutcome on_gpu = train(run_of(GetParam(), DType::kBF16, &gpu()));
  expect_losses_near(on_gpu, cpu, 0.05);
}

TEST_P(GpuTraining, GivesTheSameBytesTwiceAndWithAccumulationInThreePlans) {
  for (const DType dtype : {DType::kF32, DType::kBF16})
    for (const std::int64_t accum : {1, 4}) {
      TrainingRun run = run_of(GetParam(), dtype, &gpu());
      run.accum = accum;
      run.ema = 0.9;
      EXPECT_EQ(train(run).replica_hashes, train(run).replica_hashes);
    }
}

INSTANTIATE_TEST_SUITE_P(Models, GpuTraining,
                         ::testing::Values("mlp", "convnet", "resnet18", "resnet50"),
                         [](const auto& tested) { return tested.param; });

// Only models with blocks have something to compute again.
TEST(GpuTrainingRecomputation, GivesTheSameBytes) {
  for (const char* model : {"resnet18", "resnet50"}) {
    SCOPED_TRACE(model);
    TrainingRun run = run_of(model, DType::kBF16, &gpu());
    const TrainingOutcome kept = train(run);
    run.recompute = true;
    EXPECT_EQ(train(run).replica_hashes, kept.replica_hashes);
  }
}

TEST(GpuTrainingMemory, IsGivenBackByPlansThatAreDropped) {
  train(run_of("resnet18", DType::kBF16, &gpu()));  // libraries keep what they load once
  const std::size_t before = cuda::gpu_memory().free_bytes;
  for (int i = 0; i < 3; ++i) train(run_of("resnet18", DType::kBF16, &gpu()));
  EXPECT_EQ(cuda::gpu_memory().free_bytes, before);
}

TEST(GpuTrainingMemory, OfARunIsWithinATenthOfThePlanMadeWithoutAGpu) {
  const TrainingRun run = [] {
    TrainingRun r{.model = "resnet50", .global_batch = 64, .compute = DType::kBF16};
    r.image = {64, 64, 3};
    r.backend = &gpu();
    return r;
  }();
  DatasetInfo data;
  data.image = run.image;
  data.classes = 10;
  data.mean = data.stddev = {0.5, 0.5, 0.5};
  ProgramOptions options = program_options(run, data);
  const Program program(options);
  options.kernels.gpu = nullptr;
  const Program planned(options);
  const auto planned_bytes = region_bytes(planned.plans());
  const double expected = static_cast<double>(
      std::accumulate(planned_bytes.begin(), planned_bytes.end(), std::size_t{0}));
  const std::size_t before = cuda::gpu_memory().free_bytes;
  const RunMemory memory(gpu(), program.plans());
  const auto taken = static_cast<double>(before - cuda::gpu_memory().free_bytes);
  EXPECT_NEAR(taken, expected, 0.1 * expected);
}

TEST(GpuTrainingFaults, ADivergedStepNamesItsTensor) {
  TrainingRun run = run_of("convnet", DType::kF32, &gpu());
  run.learning_rate = 1e30;
  run.steps = 20;
  EXPECT_THROW(train(run), AgreedFailure);
}

}  // namespace
}  // namespace ddp::test
