#include "core/telemetry/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace ddp {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

Progress example() {
  StepMetrics metrics;
  metrics.step = 200;
  metrics.epoch = 0.4267;
  metrics.loss = 0.53124;
  metrics.lr = 0.05344;
  metrics.grad_norm = 1.2341;
  metrics.samples_per_s = 4512.3;
  metrics.data_ms = 0.1;
  metrics.forward_ms = 9;
  metrics.backward_ms = 17.05;
  metrics.exposed_comm_ms = 1.2;
  metrics.optimizer_ms = 0.8;
  return {.metrics = metrics,
          .total_steps = 3744,
          .ranks = 2,
          .step_ms = 28.4,
          .allocated_bytes = 35'861'299,
          .reserved_bytes = 40 << 20,
          .eta_seconds = 101};
}

TEST(ProgressLine, SaysEverythingInOneLine) {
  EXPECT_EQ(progress_line(example()),
            "step  200/3744  epoch 0.43  loss 0.5312  lr 0.0534  grad norm 1.234  "
            "4512 samples/s (2256 per rank)  "
            "step 28.4 ms: data 0.1, compute 26.1, exposed comm 1.2, optimizer 0.8  "
            "memory 34.2 MiB of 40.0 MiB  ETA 1m41s");
}

TEST(ProgressLine, SaysWhatIsUnknownOrWrong) {
  Progress progress = example();
  progress.eta_seconds = -1;
  progress.metrics.loss = std::numeric_limits<double>::quiet_NaN();
  progress.metrics.skipped = true;
  const std::string line = progress_line(progress);
  EXPECT_THAT(line, HasSubstr("loss nan"));
  EXPECT_THAT(line, EndsWith("ETA ?  (update skipped)"));
  EXPECT_THAT(line, Not(HasSubstr("\n")));
}

TEST(EvaluationLine, GivesAccuraciesInPercent) {
  EXPECT_EQ(evaluation_line(468, {.loss = 0.35121, .top1 = 0.8753, .top5 = 1}),
            "evaluation after step 468: loss 0.3512, top-1 87.53 %, top-5 100.00 %");
  EXPECT_EQ(evaluation_line(9, {.loss = 1, .top1 = 0.5, .top5 = 1}, "averaged weights"),
            "averaged weights after step 9: loss 1.0000, top-1 50.00 %, top-5 100.00 %");
}

TEST(TwoColumnTable, AlignsValues) {
  EXPECT_EQ(two_column_table({{"model", "convnet"}, {"global batch", "128"}}),
            "  model         convnet\n"
            "  global batch  128\n");
}

}  // namespace
}  // namespace ddp
