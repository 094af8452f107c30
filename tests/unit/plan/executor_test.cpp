#include "core/plan/executor.h"

#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/training/training.h"
#include "tests/unit/plan/replay.h"

namespace ddp::test {
namespace {

using testing::HasSubstr;
using testing::Optional;

const DatasetInfo kImages{.image = Shape{12, 12, 1}, .classes = 10, .mean = {0.3}, .stddev = {0.2}};

class ExecutorOfMlp : public testing::Test {
 protected:
  ExecutorOfMlp() {
    load(prepared_runner(program_.graph()), program_.graph(), program_.layout(), plan_, memory_);
  }
  std::span<float> parameter(std::string_view name) {
    for (const SlabSegment& segment : program_.layout().segments)
      if (segment.name == name)
        return {reinterpret_cast<float*>(memory_.base(Region::kParameters)) + segment.offset,
                segment.elements};
    throw std::out_of_range(std::string(name));
  }
  const StepState& state() const {
    return *reinterpret_cast<const StepState*>(memory_.base(Region::kState));
  }

  const TrainingRun run_{.compute = DType::kF32};
  const Program program_{program_options(run_, kImages)};
  const Plan& plan_ = program_.micro_step(0);
  const std::unique_ptr<Backend> backend_ = make_cpu_backend(1);
  const RunMemory memory_{*backend_, program_.plans()};
  Executor executor_{plan_, *backend_, memory_, nullptr};
};

TEST_F(ExecutorOfMlp, CountsStepsSamplesAndUpdates) {
  for (std::uint64_t step = 1; step <= 3; ++step) {
    const PhaseTimes before = backend_->phase_times();
    executor_.run();
    const PhaseTimes times = backend_->phase_times() - before;
    EXPECT_EQ(state().step, step);
    EXPECT_EQ(state().update, step);
    EXPECT_EQ(state().weight_sum, 15) << "16 samples, of which one is padding";
    for (const double seconds : {times.forward, times.backward, times.exposed, times.optimizer})
      EXPECT_GE(seconds, 0);
    EXPECT_EQ(times.exposed, 0) << "one rank waits for nobody";
  }
}

TEST_F(ExecutorOfMlp, FindsNothingWhereAllIsFinite) {
  EXPECT_EQ(executor_.first_nonfinite(), std::nullopt);
}

TEST_F(ExecutorOfMlp, BlamesAParameterBeforeTheLayerThatReadsIt) {
  parameter("fc2.weight")[3] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(executor_.first_nonfinite(), Optional(std::string("a parameter of fc2")));
}

TEST_F(ExecutorOfMlp, NamesTheFirstOpWhoseOutputIsNotFinite) {
  for (float& weight : parameter("fc1.weight")) weight = 1e30F;
  for (float& weight : parameter("fc2.weight")) weight = 1e30F;
  EXPECT_THAT(executor_.first_nonfinite(), Optional(HasSubstr("output of fc2 (linear, forward)")));
}

TEST_F(ExecutorOfMlp, NeedsACommunicatorWhenThePlanCommunicates) {
  const TrainingRun run{.ranks = 2, .compute = DType::kF32};
  const Program program(program_options(run, kImages));
  const RunMemory memory(*backend_, program.plans());
  EXPECT_THROW(Executor(program.micro_step(0), *backend_, memory, nullptr), InternalError);
}

TEST_F(ExecutorOfMlp, MemoryIsTheLargestOfEachRegion) {
  const PlanMemory &train = plan_.memory, &evaluation = program_.evaluation().memory;
  EXPECT_EQ(memory_.bytes(Region::kArena), std::max(train.arena, evaluation.arena));
  EXPECT_EQ(memory_.bytes(Region::kInput), std::max(train.input, evaluation.input));
  EXPECT_EQ(memory_.bytes(Region::kParameters), program_.layout().bytes());
  EXPECT_EQ(memory_.bytes(Region::kGradients), program_.layout().bytes());
  EXPECT_EQ(memory_.bytes(Region::kOptimizer), train.optimizer);
  std::size_t sum = 0;
  for (std::size_t region = 0; region < kRegionCount; ++region)
    sum += memory_.bytes(static_cast<Region>(region));
  EXPECT_EQ(memory_.allocated_bytes(), sum);
}

TEST_F(ExecutorOfMlp, EvaluationLeavesTheStateOfTrainingAlone) {
  executor_.run();
  const StepState before = state();
  StepState own;
  Executor evaluation(program_.evaluation(), *backend_,
                      memory_.map().with(Region::kState, reinterpret_cast<std::byte*>(&own)),
                      nullptr);
  evaluation.run();
  EXPECT_EQ(std::memcmp(&before, &state(), sizeof(before)), 0);
}

}  // namespace
}  // namespace ddp::test
