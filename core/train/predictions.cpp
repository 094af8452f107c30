#include "core/train/predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/class_names.h"
#include "core/base/text.h"
#include "core/comm/gather.h"
#include "core/ops/loss/loss.h"
#include "core/telemetry/csv.h"
#include "core/telemetry/json.h"

namespace ddp {
namespace {

/// Appends the `top` most probable classes, equal ones in the order of their numbers.
void append_ranked(std::vector<ClassProbability>& out, std::span<const double> logits,
                   std::size_t top) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](std::int32_t label) { return logits[static_cast<std::size_t>(label)]; };
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(top),
                            [&](std::int32_t a, std::int32_t b) {
                              return logit(a) > logit(b) || (logit(a) == logit(b) && a < b);
                            });
  double sum = 0;
  for (const double x : logits) sum += std::exp(x - logit(order[0]));
  for (std::size_t k = 0; k < top; ++k)
    out.push_back({order[k], std::exp(logit(order[k]) - logit(order[0])) / sum});
}

void append_csv(std::string& out, const ClassProbability& choice) {
  out += ',';
  if (choice.label != kNoPrediction) out += std::to_string(choice.label);
}
void append_probability(std::string& out, const ClassProbability& choice) {
  out += ',';
  if (choice.label != kNoPrediction) append_number(out, choice.probability);
}

template <class T>
std::vector<T> part(const std::vector<T>& all, std::ptrdiff_t begin, std::ptrdiff_t end) {
  return {all.begin() + begin, all.begin() + end};
}

OrderedJson label_json(const ClassProbability& choice) {
  return choice.label == kNoPrediction ? OrderedJson(nullptr) : OrderedJson(choice.label);
}

}  // namespace

void add_batch(Predictions& predictions, const EvaluatedBatch& batch) {
  const std::size_t classes = batch.logits.size() / batch.labels.size();
  for (std::size_t i = 0; i < batch.labels.size(); ++i) {
    if (batch.weights[i] == 0) continue;
    predictions.samples.push_back(batch.sample_ids[i]);
    predictions.labels.push_back(batch.labels[i]);
    if (batch.predictions[i] == kNoPrediction)
      predictions.ranked.insert(predictions.ranked.end(), predictions.top,
                                {kNoPrediction, std::numeric_limits<double>::quiet_NaN()});
    else
      append_ranked(predictions.ranked, batch.logits.subspan(i * classes, classes),
                    predictions.top);
  }
}

std::int64_t samples_per_piece(std::size_t top) {
  constexpr std::size_t kClasses = std::size_t{1} << 18;
  return static_cast<std::int64_t>(std::max<std::size_t>(1, kClasses / top));
}

Predictions gather(World& world, const Predictions& mine, std::int64_t first, std::int64_t last) {
  DDP_CHECK(std::ranges::is_sorted(mine.samples), "a rank's predictions are not in order");
  const auto begin = std::ranges::lower_bound(mine.samples, first) - mine.samples.begin();
  const auto end = std::ranges::lower_bound(mine.samples, last) - mine.samples.begin();
  const auto top = static_cast<std::ptrdiff_t>(mine.top);
  const std::vector samples = gather_elements(world, part(mine.samples, begin, end));
  const std::vector labels = gather_elements(world, part(mine.labels, begin, end));
  const std::vector ranked = gather_elements(world, part(mine.ranked, begin * top, end * top));
  if (world.rank() != 0) return {.top = mine.top, .samples = {}, .labels = {}, .ranked = {}};
  std::vector<std::size_t> order(samples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t row) { return samples[row]; });
  Predictions all{.top = mine.top, .samples = {}, .labels = {}, .ranked = {}};
  for (const std::size_t row : order) {
    all.samples.push_back(samples[row]);
    all.labels.push_back(labels[row]);
    const auto most_probable = ranked.begin() + static_cast<std::ptrdiff_t>(row) * top;
    all.ranked.insert(all.ranked.end(), most_probable, most_probable + top);
  }
  return all;
}

std::string predictions_heading(std::size_t top) {
  std::string text = "index,label,predicted,name,probability";
  for (std::size_t k = 2; k <= top; ++k) text += fmt::format(",top{},top{}_probability", k, k);
  return text + '\n';
}

std::string predictions_csv(const Predictions& predictions, const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t row = 0; row < predictions.samples.size(); ++row) {
    const ClassProbability* ranked = &predictions.ranked[row * predictions.top];
    text += fmt::format("{},{}", predictions.samples[row], predictions.labels[row]);
    append_csv(text, ranked[0]);
    text += ',' + csv_field(class_name(names, ranked[0].label));
    append_probability(text, ranked[0]);
    for (std::size_t k = 1; k < predictions.top; ++k) {
      append_csv(text, ranked[k]);
      append_probability(text, ranked[k]);
    }
    text += '\n';
  }
  return text;
}

std::string predictions_jsonl(const Predictions& predictions,
                              const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t row = 0; row < predictions.samples.size(); ++row) {
    const ClassProbability* ranked = &predictions.ranked[row * predictions.top];
    const std::string name = class_name(names, ranked[0].label);
    OrderedJson json{{"index", predictions.samples[row]},
                     {"label", predictions.labels[row]},
                     {"predicted", label_json(ranked[0])},
                     {"name", name.empty() ? OrderedJson(nullptr) : OrderedJson(name)},
                     {"probability", ranked[0].probability}};
    for (std::size_t k = 0; predictions.top > 1 && k < predictions.top; ++k)
      json["top"].push_back({label_json(ranked[k]), ranked[k].probability});
    text += to_text(json, -1) + '\n';
  }
  return text;
}

}  // namespace ddp
