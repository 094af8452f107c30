#include "core/plan/hash.h"

#include <gtest/gtest.h>

#include "core/ops/dropout/dropout.h"
#include "core/ops/linear/linear.h"
#include "core/ops/relu/relu.h"
#include "core/ops/reshape/reshape.h"
#include "tests/support/training/training.h"

namespace ddp::test {
namespace {

const DatasetInfo kImages{.image = Shape{12, 12, 1}, .classes = 10, .mean = {0.3}, .stddev = {0.2}};
const TrainingRun kRun{.ranks = 2, .global_batch = 12, .dropout = 0};

std::string hash_of(const ProgramOptions& options) {
  return schedule_hash(Program(options).schedule_text());
}

TEST(ScheduleHash, IsEqualForTwoBuilds) {
  EXPECT_EQ(hash_of(program_options(kRun, kImages)), hash_of(program_options(kRun, kImages)));
}

TEST(ScheduleHash, DependsOnTheLayersOfAModelAndNotOnItsName) {
  ProgramOptions same = program_options(kRun, kImages);
  same.model = [](Graph&, const ModelInputs& inputs, bool training) {
    Value x = flatten(inputs.images);
    for (const char* name : {"fc1", "fc2"}) x = relu(linear(x, {.name = name, .units = 256}));
    if (training) x = dropout(x, inputs.sample_ids, {.probability = 0, .instance = 1, .seed = 1});
    return linear(x, {.name = "fc3", .units = 10});
  };
  EXPECT_EQ(hash_of(same), hash_of(program_options(kRun, kImages)));
}

TEST(ScheduleHash, ChangesWithWhateverRanksMustAgreeOn) {
  const std::string reference = hash_of(program_options(kRun, kImages));
  const auto expect_change = [&](const char* what, auto change) {
    ProgramOptions options = program_options(kRun, kImages);
    change(options);
    EXPECT_NE(hash_of(options), reference) << what;
  };
  expect_change("image", [](ProgramOptions& o) { o.image = Shape{12, 13, 1}; });
  expect_change("micro-batch", [](ProgramOptions& o) { o.micro_batch += 1; });
  expect_change("accumulation", [](ProgramOptions& o) { o.accum = 2; });
  expect_change("precision", [](ProgramOptions& o) { o.compute = DType::kF32; });
  expect_change("attribute of an op", [](ProgramOptions& o) { o.label_smoothing = 0.1; });
  expect_change("settings", [](ProgramOptions& o) { o.settings = "seed 2\n"; });
  expect_change("one rank", [](ProgramOptions& o) { o.world_size = 1; });
  for (const char* kind : {"lars", "adamw", "lion"})
    expect_change("another optimizer", [&](ProgramOptions& o) { o.optimizer.kind = kind; });
  expect_change("averaged weights", [](ProgramOptions& o) { o.optimizer.ema = 0.9; });
  expect_change("clipping", [](ProgramOptions& o) { o.optimizer.finish.clip_norm = 1; });
  expect_change("weight decay", [](ProgramOptions& o) { o.optimizer.weight_decay = 0.1; });
  expect_change("bucket size", [](ProgramOptions& o) {
    o.buckets = [](const ReadyList& ready) { return std::vector<BucketRange>{{0, ready.size()}}; };
  });
}

TEST(ScheduleHash, IgnoresThreadsWhichMayDifferBetweenRanks) {
  ProgramOptions options = program_options(kRun, kImages);
  options.kernels.threads = 3;
  EXPECT_EQ(hash_of(options), hash_of(program_options(kRun, kImages)));
}

TEST(KernelHash, ChangesWithAnAlgorithmAndWithTheLibraries) {
  const Program program(program_options(kRun, kImages));
  const std::string reference = kernel_hash({&program.micro_step(0)}, "blas 1");
  EXPECT_EQ(kernel_hash({&program.micro_step(0)}, "blas 1"), reference);
  EXPECT_NE(kernel_hash({&program.micro_step(0)}, "blas 2"), reference);
  Plan other = program.micro_step(0);
  for (Step& step : other.steps)
    if (auto* compute = std::get_if<ComputeStep>(&step); compute && compute->name == "fc1")
      compute->kernel.algorithm += ", another";
  EXPECT_NE(kernel_hash({&other}, "blas 1"), reference);
}

}  // namespace
}  // namespace ddp::test
