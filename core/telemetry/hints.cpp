#include "core/telemetry/hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ddp {
namespace {

constexpr std::int64_t kEnoughSteps = 100;
constexpr double kLikeGuessing = 0.98;      // of ln(classes): from here
constexpr double kStillLikeGuessing = 1.5;  // to here
constexpr double kRisen = 1.1;              // of the loss at the start
constexpr double kOneClass = 0.99;          // of the predictions
constexpr double kUnbalanced = 0.9;         // of the labels
constexpr std::int64_t kFewSamples = 20;    // say nothing about a model

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double largest_share(std::span<const std::int64_t> counts) {
  return static_cast<double>(std::ranges::max(counts)) /
         static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
}

}  // namespace

void LossTrend::add(double loss) {
  if (!std::isfinite(loss)) return;
  if (count_ < kStart) first_[count_] = loss;
  latest_[count_ % kRecent] = loss;
  ++count_;
}
double LossTrend::start() const { return mean(std::span(first_).first(std::min(count_, kStart))); }
double LossTrend::recent() const {
  return mean(std::span(latest_).first(std::min(count_, kRecent)));
}

std::optional<std::string> loss_hint(const LossFigures& f) {
  const std::int64_t after_warmup = f.step - f.warmup_steps;
  if (after_warmup < std::max(kEnoughSteps, (f.total_steps - f.warmup_steps) / 10)) return {};
  if (f.lr == 0)
    return fmt::format("after {} steps the weights are still the initial ones: --lr is 0", f.step);
  const double guessing = std::log(f.classes);
  if (f.recent > kRisen * f.start)
    return fmt::format(
        "the training loss has risen from {:.4f} to {:.4f} in {} steps. Most likely the learning "
        "rate is too high: try a tenth of --lr, a longer --warmup or --clip-norm 1",
        f.start, f.recent, f.step);
  if (f.recent >= kLikeGuessing * guessing && f.recent <= kStillLikeGuessing * guessing)
    return fmt::format(
        "after {} steps the training loss is {:.4f}, no better than guessing one of {} classes "
        "({:.4f}). Most likely the learning rate is far off or labels and images do not belong "
        "together: try --lr ten times lower and ten times higher, and 'ddptrain data check'",
        f.step, f.recent, f.classes, guessing);
  return {};
}

std::optional<std::string> one_class_hint(std::span<const std::int64_t> labels,
                                          std::span<const std::int64_t> predictions) {
  const std::int64_t predicted =
      std::accumulate(predictions.begin(), predictions.end(), std::int64_t{0});
  if (predicted < kFewSamples || largest_share(predictions) < kOneClass ||
      largest_share(labels) > kUnbalanced)
    return {};
  return fmt::format(
      "the evaluation predicts class {} for {:.1f} % of the samples, whose labels are of {} "
      "classes. Most likely the learning rate was too high and the units are dead, or nearly all "
      "training samples are of that class: try a tenth of --lr with --warmup, and 'ddptrain data "
      "stats'",
      std::ranges::max_element(predictions) - predictions.begin(), 100 * largest_share(predictions),
      std::ranges::count_if(labels, [](std::int64_t count) { return count > 0; }));
}

std::string divergence_advice(std::int64_t step) {
  if (step == 1)
    return "At the first step the weights are still the initial ones, so --lr is not the cause: "
           "look at the normalisation in the lines at the start (a standard deviation near zero?) "
           "and at the data with 'ddptrain data check', and try --precision fp64";
  return fmt::format("{}, or --on-nan skip to leave such steps out", kStabilityAdvice);
}

}  // namespace ddp
