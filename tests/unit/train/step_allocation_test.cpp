// After warm-up a training step takes nothing from the heap in the thread that computes.
#include <gtest/gtest.h>

#include <mutex>

#include "core/telemetry/metrics.h"
#include "tests/support/allocations/allocations.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/training/training.h"

namespace ddp::test {
namespace {

constexpr std::int64_t kWarmUp = 6, kSteps = 20;

struct Case {
  const char* model;
  int ranks, threads;
  std::int64_t accum;
  bool overlap;
};

class StepAllocations : public testing::TestWithParam<Case> {};

TEST_P(StepAllocations, AreNone) {
  const Case& c = GetParam();
  TrainingRun run{.model = c.model,
                  .ranks = c.ranks,
                  .global_batch = 24,
                  .accum = c.accum,
                  .steps = kSteps,
                  .compute = DType::kF32,
                  .overlap = c.overlap,
                  .clip_norm = 1,
                  .bucket_bytes = 4096};
  run.threads = c.threads;
  const TemporaryDirectory directory;
  MetricsWriter metrics({.jsonl = directory / "m.jsonl",
                         .csv = directory / "m.csv",
                         .events = directory / "m.events"},
                        make_logger(1));
  std::mutex mutex;
  std::vector<std::size_t> in_warm_up, after;
  run.adjust = [&](int rank, TrainerOptions&, TrainerHooks& hooks) {
    hooks.on_step_begin = [&](std::int64_t step) {
      if (step != kWarmUp + 1) return;
      const std::size_t calls = take_allocations().calls;
      const std::lock_guard lock(mutex);
      in_warm_up.push_back(calls);
      take_allocations();
    };
    hooks.on_step = [&, rank](const StepReport& report) {
      if (rank == 0)
        metrics.step({.step = report.step,
                      .epoch = report.epoch,
                      .loss = report.loss,
                      .grad_norm = report.gradient_norm});
      if (report.step != kSteps) return;
      const std::size_t calls = take_allocations().calls;
      const std::lock_guard lock(mutex);
      after.push_back(calls);
    };
  };
  train(run);
  const auto ranks = static_cast<std::size_t>(c.ranks);
  EXPECT_EQ(after, std::vector<std::size_t>(ranks, 0));
  ASSERT_EQ(in_warm_up.size(), ranks);
  for (const std::size_t calls : in_warm_up) EXPECT_GT(calls, 0U) << "the count works";
}

INSTANTIATE_TEST_SUITE_P(Runs, StepAllocations,
                         testing::Values(Case{"mlp", 1, 1, 1, true}, Case{"mlp", 2, 1, 1, true},
                                         Case{"mlp", 2, 1, 3, false},
                                         Case{"convnet", 1, 2, 2, true},
                                         Case{"convnet", 2, 1, 1, true}),
                         [](const auto& instance) {
                           const Case& c = instance.param;
                           return fmt::format("{}_{}_ranks_{}_threads_accum_{}_overlap_{}", c.model,
                                              c.ranks, c.threads, c.accum,
                                              c.overlap ? "on" : "off");
                         });

}  // namespace
}  // namespace ddp::test
