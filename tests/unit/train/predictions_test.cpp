#include "core/train/predictions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "comm/fake/fake_cluster.h"
#include "core/ops/loss/loss.h"

namespace ddp {
namespace {

using nlohmann::json;

/// A batch of three classes with one padded item, for samples from `first`.
struct Batch {
  explicit Batch(std::int64_t first) : sample_ids{first, first + 1, 0} {}
  std::vector<std::int32_t> labels{2, 1, 0};
  std::vector<float> weights{1, 1, 0};
  std::vector<std::int64_t> sample_ids;
  std::vector<std::int32_t> predictions{1, 0, 0};
  std::vector<double> logits{0, std::log(2.0), std::log(1.0), 700, 700, -700, 9, 9, 9};

  operator EvaluatedBatch() const {
    return {.labels = labels,
            .weights = weights,
            .sample_ids = sample_ids,
            .predictions = predictions,
            .logits = logits};
  }
};

Predictions of_one_batch(std::size_t top) {
  Predictions predictions{.top = top, .samples = {}, .labels = {}, .ranked = {}};
  add_batch(predictions, Batch(0));
  return predictions;
}

TEST(Predictions, RankClassesByProbabilityAndLeavePaddingOut) {
  const Predictions predictions = of_one_batch(3);
  EXPECT_THAT(predictions.samples, testing::ElementsAre(0, 1));
  EXPECT_THAT(predictions.labels, testing::ElementsAre(2, 1));
  const std::int32_t order[] = {1, 0, 2, 0, 1, 2};  // equal ones by number
  const double probabilities[] = {0.5, 0.25, 0.25, 0.5, 0.5, 0};
  ASSERT_EQ(predictions.ranked.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(predictions.ranked[i].label, order[i]);
    EXPECT_NEAR(predictions.ranked[i].probability, probabilities[i],
                4 * std::numeric_limits<double>::epsilon());
  }
}

TEST(Predictions, AreWrittenWithNamesWhereTheyAreKnown) {
  const Predictions predictions = of_one_batch(2);
  EXPECT_EQ(predictions_csv(predictions, {"cat", "dog, small", "eel"}),
            "0,2,1,\"dog, small\",0.5,0,0.25\n"
            "1,1,0,cat,0.5,1,0.5\n");
  EXPECT_EQ(predictions_csv(of_one_batch(1), {}), "0,2,1,,0.5\n1,1,0,,0.5\n");
  EXPECT_EQ(predictions_heading(1), "index,label,predicted,name,probability\n");
  EXPECT_EQ(predictions_heading(2),
            "index,label,predicted,name,probability,top2,top2_probability\n");
  EXPECT_EQ(predictions_jsonl(predictions, {"cat"}),
            R"({"index":0,"label":2,"predicted":1,"name":null,"probability":0.5,)"
            R"("top":[[1,0.5],[0,0.25]]})"
            "\n"
            R"({"index":1,"label":1,"predicted":0,"name":"cat","probability":0.5,)"
            R"("top":[[0,0.5],[1,0.5]]})"
            "\n");
}

TEST(Predictions, APieceIsBoundedHoweverManyClassesAreKept) {
  for (const std::size_t top : {1U, 10U, 1000U, 1U << 20}) {
    EXPECT_GE(samples_per_piece(top), 1);
    EXPECT_LE(samples_per_piece(top), std::max<std::int64_t>(1, (1 << 18) / std::int64_t(top)));
  }
}

TEST(Predictions, OfLogitsWithANanAreUnknown) {
  Batch batch(0);
  batch.logits[1] = std::numeric_limits<double>::quiet_NaN();
  batch.predictions[0] = kNoPrediction;
  Predictions predictions{.top = 2, .samples = {}, .labels = {}, .ranked = {}};
  add_batch(predictions, batch);
  EXPECT_THAT(predictions_csv(predictions, {"cat", "dog", "eel"}),
              testing::StartsWith("0,2,,,,,\n"));
  const std::string text = predictions_jsonl(predictions, {"cat", "dog", "eel"});
  const json row = json::parse(text.substr(0, text.find('\n')));
  EXPECT_TRUE(row["predicted"].is_null());
  EXPECT_TRUE(row["name"].is_null());
  EXPECT_TRUE(row["probability"].is_null());
}

TEST(Predictions, OfAllRanksStandInTheOrderOfSamplesOnRankZeroPieceByPiece) {
  constexpr int kRanks = 3;
  std::mutex mutex;
  comm::FakeCluster(kRanks).run([&](World& world, Communicator&) {
    Predictions mine{.top = 2, .samples = {}, .labels = {}, .ranked = {}};
    // Batches in turn, as the evaluator deals them; the last rank has one less.
    for (int batch = world.rank(); batch < 2 * kRanks - 1; batch += kRanks)
      add_batch(mine, Batch(2 * batch));
    for (const std::int64_t piece : {1, 3, 10, 100}) {
      std::int64_t sample = 0;
      for (std::int64_t first = 0; first < 10; first += piece) {
        const Predictions rows = gather(world, mine, first, first + piece);
        const std::lock_guard lock(mutex);
        if (world.rank() != 0) {
          EXPECT_TRUE(rows.samples.empty() && rows.labels.empty() && rows.ranked.empty());
          continue;
        }
        for (std::size_t row = 0; row < rows.samples.size(); ++row, ++sample) {
          EXPECT_EQ(rows.samples[row], sample);
          EXPECT_EQ(rows.labels[row], sample % 2 == 0 ? 2 : 1);
          EXPECT_EQ(rows.ranked[2 * row].label, sample % 2 == 0 ? 1 : 0);
        }
      }
      EXPECT_EQ(sample, world.rank() == 0 ? 10 : 0) << "in pieces of " << piece;
    }
  });
}

}  // namespace
}  // namespace ddp
