#include <gtest/gtest.h>

#include "core/telemetry/metrics.h"
#include "tests/support/allocations/allocations.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/telemetry/metrics_files.h"

namespace ddp {
namespace {

TEST(MetricsWriter, AllocatesNothingOnceItsRowsHaveBeenWritten) {
  const TemporaryDirectory directory;
  MetricsWriter writer(files_in(directory), make_logger(1));
  StepMetrics metrics{.step = 1,
                      .loss = 1.0 / 3,
                      .grad_norm = 2.0 / 3,
                      .val_loss = {},
                      .val_top1 = {},
                      .val_top5 = {}};
  const EvaluationMetrics evaluation{.loss = 1.0 / 7, .top1 = 1.0 / 9, .top5 = 1.0 / 11};
  for (; metrics.step < 5; ++metrics.step) {
    writer.step(metrics);
    writer.evaluation(evaluation);
  }
  EXPECT_GT(test::take_allocations().calls, 0U) << "the count works";
  for (; metrics.step < 1000; ++metrics.step) {
    writer.step(metrics);
    writer.evaluation(evaluation);
  }
  EXPECT_EQ(test::take_allocations().calls, 0U);
}

}  // namespace
}  // namespace ddp
