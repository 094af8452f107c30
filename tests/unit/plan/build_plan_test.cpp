#include "core/plan/build_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "tests/support/training/training.h"

namespace ddp::test {
namespace {

const DatasetInfo kImages{.image = Shape{12, 12, 1}, .classes = 10, .mean = {0.3}, .stddev = {0.2}};

/// Positions of the steps of one plan, by what they do.
struct Positions {
  explicit Positions(const Plan& plan) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      if (const auto* step = std::get_if<ComputeStep>(&plan.steps[i])) {
        compute[step->name] = i;
        if (step->phase == Phase::kBackward) last_backward = i;
      } else if (const auto* comm = std::get_if<CommStep>(&plan.steps[i])) {
        EXPECT_TRUE(posts.emplace(comm->collective.label, i).second) << "posted twice";
        signals.insert(comm->signal);
      } else if (const auto* wait = std::get_if<WaitStep>(&plan.steps[i])) {
        EXPECT_TRUE(waits.emplace(wait->signal, i).second) << "waited for twice";
      }
    }
  }
  std::map<std::string, std::size_t> compute, posts;
  std::map<std::size_t, std::size_t> waits;
  std::set<std::size_t> signals;
  std::size_t last_backward = 0;
};

struct Case {
  const char* model;
  int ranks;
  std::int64_t accum;
  bool overlap;
};

class Collectives : public testing::TestWithParam<Case> {
 protected:
  Collectives()
      : run_{.model = GetParam().model,
             .ranks = GetParam().ranks,
             .global_batch = 2 * GetParam().ranks * GetParam().accum,
             .accum = GetParam().accum,
             .overlap = GetParam().overlap,
             .bucket_bytes = 4096},
        program_(program_options(run_, kImages)) {}
  const Plan& last() const { return program_.micro_step(run_.accum - 1); }

  TrainingRun run_;
  Program program_;
};

TEST_P(Collectives, AreInTheLastMicroStepOnly) {
  for (std::int64_t q = 0; q + 1 < run_.accum; ++q) {
    const Positions positions(program_.micro_step(q));
    EXPECT_TRUE(positions.posts.empty());
    EXPECT_TRUE(positions.waits.empty());
  }
}

TEST_P(Collectives, ReduceEveryBucketOnceBehindItsCommit) {
  const Positions positions(last());
  const std::vector<Bucket>& buckets = program_.layout().buckets;
  EXPECT_GT(buckets.size(), 1U);
  EXPECT_EQ(positions.posts.size(), buckets.size() + 1);
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const std::size_t post = positions.posts.at(fmt::format("bucket {}", b));
    const std::size_t commit = positions.compute.at(fmt::format("bucket{}.commit", b));
    EXPECT_LT(commit, post);
    if (run_.overlap) {
      EXPECT_EQ(post, commit + 1) << "something is computed before a ready bucket is posted";
    } else {
      EXPECT_GT(post, positions.last_backward);
    }
    const auto& step = std::get<CommStep>(last().steps[post]);
    EXPECT_EQ(step.range.region, Region::kGradients);
    EXPECT_EQ(step.range.offset, buckets[b].begin * size_of(program_.layout().dtype));
    EXPECT_EQ(step.range.type.elements(),
              static_cast<std::int64_t>(buckets[b].end - buckets[b].begin));
  }
}

TEST_P(Collectives, SumTheStepStateBehindTheLastBucket) {
  const Positions positions(last());
  const std::size_t post = positions.posts.at("step state");
  for (const auto& [label, position] : positions.posts) EXPECT_LE(position, post) << label;
  const auto& step = std::get<CommStep>(last().steps[post]);
  EXPECT_EQ(step.range.region, Region::kState);
  EXPECT_EQ(step.range.offset, 0U);
  EXPECT_EQ(step.range.type.bytes(), StepState::kSummed * sizeof(double));
  EXPECT_EQ(step.range.type.dtype, DType::kF64);
}

TEST_P(Collectives, AreEachWaitedForOnceBeforeTheStepIsFinished) {
  const Positions positions(last());
  EXPECT_EQ(positions.signals.size(), positions.posts.size()) << "an event is used twice";
  EXPECT_EQ(positions.waits.size(), positions.posts.size());
  EXPECT_EQ(last().events, positions.posts.size());
  for (const auto& [signal, position] : positions.waits) {
    EXPECT_TRUE(positions.signals.contains(signal));
    EXPECT_GT(position, positions.posts.at("step state"));
    EXPECT_LT(position, positions.compute.at("finish_step"));
  }
}

TEST_P(Collectives, AreTheSameOnEveryRankByTheirPositionInThePlan) {
  int position = 0;
  for (const Step& step : last().steps)
    if (const auto* comm = std::get_if<CommStep>(&step)) {
      EXPECT_EQ(comm->collective.sequence, position++);
    }
}

INSTANTIATE_TEST_SUITE_P(Plans, Collectives,
                         testing::Values(Case{"mlp", 2, 1, true}, Case{"mlp", 2, 1, false},
                                         Case{"mlp", 3, 2, true}, Case{"convnet", 2, 3, true},
                                         Case{"convnet", 4, 2, false}),
                         [](const auto& instance) {
                           const Case& c = instance.param;
                           return fmt::format("{}_{}_ranks_accum_{}_overlap_{}", c.model, c.ranks,
                                              c.accum, c.overlap ? "on" : "off");
                         });

TEST(TrainPlan, CommunicatesNothingWithOneRank) {
  for (const std::int64_t accum : {1, 2}) {
    const TrainingRun run{.accum = accum};
    const Program program(program_options(run, kImages));
    for (const Plan* plan : program.plans()) {
      const Positions positions(*plan);
      EXPECT_TRUE(positions.posts.empty()) << plan->name;
      EXPECT_TRUE(positions.waits.empty()) << plan->name;
      EXPECT_EQ(plan->events, 0U) << plan->name;
    }
  }
}

TEST(TrainPlan, CommitsEveryParameterOnceInEveryMicroStep) {
  const TrainingRun run{.model = "convnet", .global_batch = 12, .accum = 3, .bucket_bytes = 4096};
  const Program program(program_options(run, kImages));
  std::vector<std::size_t> expected;
  for (const SlabSegment& segment : program.layout().segments)
    expected.push_back(segment.offset * size_of(program.layout().dtype));
  for (std::int64_t q = 0; q < run.accum; ++q) {
    std::vector<std::size_t> committed;
    for (const Step& step : program.micro_step(q).steps)
      if (const auto* compute = std::get_if<ComputeStep>(&step);
          compute != nullptr && compute->kind == "commit")
        for (const Placement& output : compute->outputs) committed.push_back(output.offset);
    EXPECT_EQ(committed, expected) << "micro-step " << q;
  }
}

TEST(TrainPlan, BeginsTheStepInTheFirstMicroStepAndUpdatesInTheLast) {
  const TrainingRun run{.global_batch = 12, .accum = 3};
  const Program program(program_options(run, kImages));
  for (std::int64_t q = 0; q < run.accum; ++q) {
    const Positions positions(program.micro_step(q));
    EXPECT_EQ(positions.compute.contains("begin_step"), q == 0);
    EXPECT_EQ(positions.compute.contains("finish_step"), q == 2);
    EXPECT_EQ(positions.compute.contains("optimizer"), q == 2);
  }
}

TEST(TrainPlan, AveragesWeightsBehindTheUpdateWithEmaOnly) {
  const DatasetInfo images{
      .image = Shape{12, 12, 3}, .classes = 10, .mean = {0.3, 0.3, 0.3}, .stddev = {0.2, 0.2, 0.2}};
  TrainingRun run{.model = "resnet18", .image = images.image};
  EXPECT_EQ(Program(program_options(run, images)).micro_step(0).memory.average, 0U);
  run.ema = 0.9;
  const Program program(program_options(run, images));
  const Plan& plan = program.micro_step(0);
  const Positions positions(plan);
  std::size_t end = 0;
  for (const char* name : {"ema", "ema.statistics"}) {
    const std::size_t position = positions.compute.at(name);
    EXPECT_GT(position, positions.compute.at("optimizer"));
    EXPECT_GT(position, positions.compute.at("running_average"));
    const Placement& average = std::get<ComputeStep>(plan.steps[position]).outputs[0];
    EXPECT_EQ(average.region, Region::kAverage);
    EXPECT_EQ(average.offset, end) << "the statistics lie behind the parameters";
    end += average.type.bytes();
  }
  EXPECT_EQ(plan.memory.average, end);
  EXPECT_EQ(end, program.layout().bytes() + program.layout().statistics_bytes());
}

TEST(EvaluationPlan, ReadsParametersWhereTrainingUpdatesThemAndHasNoOtherPhase) {
  const TrainingRun run;
  const Program program(program_options(run, kImages));
  std::set<std::size_t> offsets, read;
  for (const SlabSegment& segment : program.layout().segments)
    offsets.insert(segment.offset * size_of(program.layout().dtype));
  for (const Step& step : program.evaluation().steps) {
    const auto* compute = std::get_if<ComputeStep>(&step);
    if (compute == nullptr) continue;
    EXPECT_EQ(compute->phase, Phase::kForward);
    for (const Placement& input : compute->inputs)
      if (input.region == Region::kParameters) read.insert(input.offset);
  }
  EXPECT_EQ(read, offsets);
  EXPECT_EQ(program.evaluation().memory.gradients, 0U);
}

/// Largest sum of intermediate values alive at one op, from the steps' order alone: a value lives
/// from the step that writes it to the last that reads it.
std::size_t largest_sum_alive(const Graph& graph) {
  std::vector<std::size_t> last(graph.values().size());
  for (std::size_t i = 0; i < graph.ops().size(); ++i) {
    for (ValueId id : graph.ops()[i].outputs) last[id.index()] = i;
    for (ValueId id : graph.ops()[i].inputs) last[id.index()] = i;
  }
  // Gradients wait for the commit of their bucket, at the latest behind the last op.
  for (const Parameter& parameter : graph.parameters())
    for (ValueId id : parameter.contributions) last[id.index()] = graph.ops().size();
  std::size_t most = 0;
  for (std::size_t i = 0; i < graph.ops().size(); ++i) {
    std::size_t alive = 0;
    for (std::size_t v = 0; v < last.size(); ++v) {
      const ValueInfo& value = graph.values()[v];
      if (value.producer.valid() && value.producer.index() <= i && i <= last[v] &&
          !graph.op(value.producer).definition->is_view)
        alive += value.type.bytes();
    }
    most = std::max(most, alive);
  }
  return most;
}

TEST(Arena, IsCloseToTheLargestSumOfTensorsAliveAtOneTime) {
  for (const char* model : {"mlp", "convnet"})
    for (const std::int64_t micro_batch : {1, 3, 16, 64})
      for (const DType compute : {DType::kF32, DType::kF64})
        for (const std::int64_t accum : {1, 3}) {
          const TrainingRun run{.model = model,
                                .global_batch = micro_batch * accum,
                                .accum = accum,
                                .compute = compute};
          ProgramOptions options = program_options(run, kImages);
          options.image = Shape{28, 28, 1};
          const Program program(options);
          for (const Plan* plan : program.plans()) {
            SCOPED_TRACE(fmt::format("{}, micro-batch {}, {}", model, micro_batch, plan->name));
            EXPECT_LE(static_cast<double>(plan->memory.arena),
                      1.15 * static_cast<double>(plan->memory.arena_floor));
            EXPECT_LE(plan->memory.arena_floor, plan->memory.arena);
          }
          // In-place outputs and early commits make the floor lower, workspaces and alignment
          // make it higher.
          const PlanMemory& memory = program.micro_step(0).memory;
          std::size_t workspace = 0;
          for (const Step& step : program.micro_step(0).steps)
            if (const auto* compute_step = std::get_if<ComputeStep>(&step))
              workspace = std::max(workspace, compute_step->kernel.workspace_bytes);
          EXPECT_LE(memory.arena_floor, largest_sum_alive(program.graph()) + workspace +
                                            256 * program.graph().values().size());
        }
}

}  // namespace
}  // namespace ddp::test
