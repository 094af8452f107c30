#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "core/telemetry/metrics.h"
#include "tests/support/temporary_directory.h"

namespace {
thread_local std::size_t allocations = 0;
}

// Counts what this program's threads allocate; everything else is as the standard library does it.
void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace ddp {
namespace {

TEST(MetricsWriter, AllocatesNothingOnceItsRowsHaveBeenWritten) {
  const TemporaryDirectory directory;
  MetricsWriter writer(directory / "m.jsonl", directory / "m.csv", make_logger(1));
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
  const std::size_t before = allocations;
  for (; metrics.step < 1000; ++metrics.step) {
    writer.step(metrics);
    writer.evaluation(evaluation);
  }
  EXPECT_EQ(allocations, before);
  EXPECT_GT(before, 0U);
}

}  // namespace
}  // namespace ddp
