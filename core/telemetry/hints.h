// Hints: one line with the likely cause and what to try, for runs that train without an error and
// learn nothing. Pure functions over figures; rank 0's records ask and log each hint once per run.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ddp {

/// Mean training loss of the first steps and of the most recent ones; a step whose loss is not
/// finite is left out. Allocates nothing.
class LossTrend {
 public:
  void add(double loss);
  double start() const;   ///< NaN before the first step
  double recent() const;  ///< NaN before the first step

 private:
  static constexpr std::size_t kStart = 10, kRecent = 50;  // steps
  std::array<double, kStart> first_{};
  std::array<double, kRecent> latest_{};
  std::size_t count_ = 0;
};

struct LossFigures {
  std::int64_t step = 0, warmup_steps = 0, total_steps = 0;
  double lr = 0;                 ///< the peak
  double start = 0, recent = 0;  ///< of LossTrend
  int classes = 0;
};
/// When the loss still is about that of guessing, ln(classes), or higher than at the start, a tenth
/// of the run but at least 100 steps after warm-up; at a learning rate of 0, that it is 0. (A loss far above ln(classes) that was higher
/// before is falling.)
std::optional<std::string> loss_hint(const LossFigures& figures);

/// When at least 99 % of an evaluation's predictions are one class, and at most 90 % of its labels.
/// `labels` and `predictions` are samples by class.
std::optional<std::string> one_class_hint(std::span<const std::int64_t> labels,
                                          std::span<const std::int64_t> predictions);

/// What to try when weights or activations overflow.
inline constexpr std::string_view kStabilityAdvice =
    "Try a lower --lr, --clip-norm 1 or a longer --warmup";

/// What to try when the loss or the gradient of `step`, counted from 1, is not finite.
std::string divergence_advice(std::int64_t step);

}  // namespace ddp
