#include "core/train/evaluate.h"

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/fake/fake_cluster.h"
#include "tests/support/training/training.h"

namespace ddp::test {
namespace {

struct Sample {
  std::int32_t label = 0, prediction = 0;
  std::vector<double> logits;
  bool operator==(const Sample&) const = default;
};

struct Seen {
  std::map<std::int64_t, Sample> samples;
  std::int64_t times = 0;
  Evaluation evaluation;  ///< of rank 0
};

/// What an evaluation of untrained weights shows of `samples` samples on so many ranks.
Seen evaluate(int ranks, std::int64_t samples, DType compute) {
  const TrainingRun run{.ranks = ranks, .compute = compute};
  const std::unique_ptr<Dataset> data = open_dataset(
      {.data = "synthetic", .synthetic_size = samples, .synthetic_image = run.image, .classes = 10},
      Split::kValidation);
  Seen seen;
  std::mutex mutex;
  comm::FakeCluster(ranks).run([&](World& world, Communicator&) {
    const std::unique_ptr<Backend> backend = make_cpu_backend(1);
    const Program program(program_options(run, data->info()));
    const RunMemory memory(*backend, program.plans());
    initialize_parameters(program, *backend, memory);
    Evaluator evaluator(program, *backend, memory, world, *data, {});
    const Evaluation evaluation = evaluator.run([&](const EvaluatedBatch& batch) {
      const std::lock_guard lock(mutex);
      const std::size_t classes = batch.logits.size() / batch.labels.size();
      for (std::size_t i = 0; i < batch.labels.size(); ++i) {
        if (batch.weights[i] == 0) continue;
        const auto logits = batch.logits.subspan(i * classes, classes);
        ++seen.times;
        seen.samples[batch.sample_ids[i]] = {.label = batch.labels[i],
                                             .prediction = batch.predictions[i],
                                             .logits = {logits.begin(), logits.end()}};
      }
    });
    if (world.rank() == 0) seen.evaluation = evaluation;
  });
  return seen;
}

TEST(EvaluatedBatch, ShowsEachSampleOnceAndAlikeOnAnyRanks) {
  for (const DType compute : {DType::kF32, DType::kF64}) {
    const Seen alone = evaluate(1, 150, compute);
    EXPECT_EQ(alone.times, 150);
    EXPECT_EQ(alone.samples.size(), 150U);
    for (const int ranks : {2, 4}) {  // 3 batches: the fourth rank has none
      const Seen spread = evaluate(ranks, 150, compute);
      EXPECT_EQ(spread.times, 150);
      EXPECT_EQ(spread.samples, alone.samples);
    }
  }
}

TEST(EvaluatedBatch, HoldsTheLogitsThatThePredictionsComeFrom) {
  const Seen seen = evaluate(1, 70, DType::kF32);
  std::int64_t correct = 0;
  for (const auto& [id, sample] : seen.samples) {
    ASSERT_EQ(sample.logits.size(), 10U);
    EXPECT_EQ(sample.prediction, std::ranges::max_element(sample.logits) - sample.logits.begin());
    correct += sample.prediction == sample.label ? 1 : 0;
  }
  EXPECT_EQ(seen.evaluation.top1, static_cast<double>(correct) / 70);
}

TEST(Evaluation, CountsLabelsAndPredictionsByClassOnAnyRanks) {
  std::vector<std::int64_t> labels(10), predictions(10);
  for (const auto& [id, sample] : evaluate(1, 150, DType::kF32).samples) {
    ++labels[static_cast<std::size_t>(sample.label)];
    ++predictions[static_cast<std::size_t>(sample.prediction)];
  }
  for (const int ranks : {1, 2, 4}) {
    const Evaluation evaluation = evaluate(ranks, 150, DType::kF32).evaluation;
    EXPECT_EQ(evaluation.labels, labels);
    EXPECT_EQ(evaluation.predictions, predictions);
  }
}

TEST(Diverged, AtTheFirstStepPointsToTheInput) {
  TrainingRun run{.ranks = 2, .steps = 2};
  run.disturb = [](int rank, const Program&, const RunMemory& memory) {
    if (rank == 1)
      *reinterpret_cast<double*>(memory.base(Region::kParameters)) =
          std::numeric_limits<double>::quiet_NaN();
  };
  try {
    train(run);
    FAIL() << "a NaN among the weights was not noticed";
  } catch (const AgreedFailure& error) {
    EXPECT_EQ(error.code(), ExitCode::kDiverged);
    EXPECT_THAT(error.what(), testing::HasSubstr("step 1: "));
    EXPECT_THAT(error.what(), testing::HasSubstr("on rank 1"));
    EXPECT_THAT(error.what(), testing::HasSubstr("look at the normalisation"));
  }
}

}  // namespace
}  // namespace ddp::test
