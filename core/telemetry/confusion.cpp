#include "core/telemetry/confusion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "core/base/class_names.h"
#include "core/base/text.h"
#include "core/telemetry/csv.h"
#include "core/telemetry/json.h"

namespace ddp {
namespace {

std::string percent(const std::optional<double>& fraction) {
  return fraction ? fmt::format("{:.2f} %", 100 * *fraction) : "-";
}

std::int64_t without_prediction(const ConfusionMatrix& confusion) {
  std::int64_t samples = 0;
  for (int label = 0; label < confusion.classes; ++label) samples += confusion.no_prediction(label);
  return samples;
}

}  // namespace

ConfusionMatrix::ConfusionMatrix(int class_count)
    : classes(class_count), counts(index(class_count) * (index(class_count) + 1)) {}

void ConfusionMatrix::add(std::int32_t label, std::int32_t predicted) {
  ++counts[index(label) * (index(classes) + 1) + index(predicted < 0 ? classes : predicted)];
}

std::vector<ClassScore> class_scores(const ConfusionMatrix& confusion) {
  const int classes = confusion.classes;
  std::vector<ClassScore> scores;
  for (int label = 0; label < classes; ++label) {
    const auto row = confusion.row(label);
    ClassScore score{.samples = std::accumulate(row.begin(), row.end(), std::int64_t{0}),
                     .correct = confusion.at(label, label),
                     .recall = {},
                     .precision = {},
                     .confused_with = {}};
    for (int other = 0; other < classes; ++other) {
      score.predicted += confusion.at(other, label);
      if (other == label || confusion.at(label, other) <= score.confused) continue;
      score.confused = confusion.at(label, other);
      score.confused_with = other;
    }
    const auto correct = static_cast<double>(score.correct);
    if (score.samples > 0) score.recall = correct / static_cast<double>(score.samples);
    if (score.predicted > 0) score.precision = correct / static_cast<double>(score.predicted);
    scores.push_back(score);
  }
  return scores;
}

std::string class_table(const std::vector<ClassScore>& scores,
                        const std::vector<std::string>& names) {
  std::vector<std::vector<std::string>> rows{
      {"class", "samples", "correct", "recall", "precision", "most confused with"}};
  for (int label = 0; label < std::ssize(scores); ++label) {
    const ClassScore& score = scores[static_cast<std::size_t>(label)];
    rows.push_back(
        {class_label(names, label), fmt::to_string(score.samples), fmt::to_string(score.correct),
         percent(score.recall), percent(score.precision),
         score.confused_with
             ? fmt::format("{} ({})", class_label(names, *score.confused_with), score.confused)
             : "-"});
  }
  return align_columns(rows, "lrrrrl");
}

std::string confusion_csv(const ConfusionMatrix& confusion, const std::vector<std::string>& names) {
  const bool with_none = without_prediction(confusion) > 0;
  std::string text = "label";
  for (int label = 0; label < confusion.classes; ++label)
    text += ',' + csv_field(class_label(names, label));
  text += with_none ? ",none\n" : "\n";
  for (int label = 0; label < confusion.classes; ++label) {
    auto row = confusion.row(label);
    if (!with_none) row = row.first(row.size() - 1);
    text += fmt::format("{},{}\n", csv_field(class_label(names, label)), fmt::join(row, ","));
  }
  return text;
}

std::string confusion_json(const ConfusionMatrix& confusion,
                           const std::vector<std::string>& names) {
  OrderedJson json{{"classes", OrderedJson::array()},
                   {"counts", OrderedJson::array()},
                   {"no_prediction", OrderedJson::array()}};
  for (int label = 0; label < confusion.classes; ++label) {
    const auto row = confusion.row(label);
    json["classes"].push_back(class_label(names, label));
    json["counts"].push_back(std::vector(row.begin(), row.end() - 1));
    json["no_prediction"].push_back(row.back());
  }
  return to_text(json, -1) + '\n';
}

}  // namespace ddp
