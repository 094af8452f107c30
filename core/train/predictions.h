// Predictions: what a model says of each sample, as rows for people and scripts. Ranks collect the
// rows of their own batches; gathered, they are complete and in the order of the data set, whatever
// the number of ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/train/evaluate.h"

namespace ddp {

struct ClassProbability {
  std::int32_t label = 0;  ///< kNoPrediction when the sample has a NaN among its logits
  double probability = 0;  ///< softmax of the logits; NaN without a prediction
};

struct Predictions {
  std::size_t top = 1;                ///< classes kept of each sample
  std::vector<std::int64_t> samples;  ///< index in the data set
  std::vector<std::int32_t> labels;
  std::vector<ClassProbability> ranked;  ///< [samples, top], the most probable first
};

/// Appends the samples of a batch that are no padding.
void add_batch(Predictions& predictions, const EvaluatedBatch& batch);

/// How many samples to gather at once, so that memory stays bounded.
std::int64_t samples_per_piece(std::size_t top);

/// Collective. The rows of all ranks that are of samples [first, last), by sample, on rank 0; the
/// other ranks get none. `mine` is by sample, as the evaluator deals them.
Predictions gather(World& world, const Predictions& mine, std::int64_t first, std::int64_t last);

/// "index,label,predicted,name,probability" and, for top > 1, "top2,top2_probability,…": the line
/// in front of those of predictions_csv.
std::string predictions_heading(std::size_t top);
/// A line for each sample. `names` are those of the classes, or empty; then so is that column. A
/// sample without a prediction has empty fields.
std::string predictions_csv(const Predictions& predictions, const std::vector<std::string>& names);
/// One JSON object a line, with the same keys and, for top > 1, "top": [[class, probability], …].
std::string predictions_jsonl(const Predictions& predictions,
                              const std::vector<std::string>& names);

}  // namespace ddp
