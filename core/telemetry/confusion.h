// Confusion matrix: how many samples of each label were predicted as each class, and what follows
// from it for every class. Counts are whole samples, so ranks can sum them exactly; `eval` fills,
// prints and writes it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ddp {

struct ConfusionMatrix {
  explicit ConfusionMatrix(int class_count);
  /// One sample. `predicted` below 0: the sample has no prediction.
  void add(std::int32_t label, std::int32_t predicted);
  std::int64_t at(int label, int predicted) const { return row(label)[index(predicted)]; }
  std::int64_t no_prediction(int label) const { return row(label).back(); }
  /// The predictions of one label: [classes + 1], the last one is of samples without a prediction.
  std::span<const std::int64_t> row(int label) const {
    return std::span(counts).subspan(index(label) * (index(classes) + 1), index(classes) + 1);
  }

  int classes;
  std::vector<std::int64_t> counts;  ///< by row; what ranks sum

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
};

/// How one class fares.
struct ClassScore {
  std::int64_t samples = 0;          ///< that have this label
  std::int64_t predicted = 0;        ///< that are predicted as this class
  std::int64_t correct = 0;          ///< both
  std::optional<double> recall;      ///< correct / samples; nothing without samples
  std::optional<double> precision;   ///< correct / predicted; nothing when it is never predicted
  std::optional<int> confused_with;  ///< the other class its samples are predicted as most often
  std::int64_t confused = 0;         ///< how often that is
};

std::vector<ClassScore> class_scores(const ConfusionMatrix& confusion);

/// A line for each class: label, samples, correct, recall, precision, most confused with.
std::string class_table(const std::vector<ClassScore>& scores,
                        const std::vector<std::string>& names);

/// Rows are labels, columns predictions, both with a heading. Samples without a prediction have a
/// last column "none" when there are any.
std::string confusion_csv(const ConfusionMatrix& confusion, const std::vector<std::string>& names);
/// {"classes": […], "counts": [[…], …], "no_prediction": […]}
std::string confusion_json(const ConfusionMatrix& confusion, const std::vector<std::string>& names);

}  // namespace ddp
