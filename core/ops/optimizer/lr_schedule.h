// Learning rate as a function of the update number: a warm-up to the peak, then one of the shapes
// below. Plain arithmetic on a value type, so that the same code runs inside the step on any device
// and in the start-up table.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

#include "core/base/error.h"
#include "core/ops/optimizer/host_device.h"

namespace ddp {

enum class LrKind : std::uint8_t {
  kConstant,
  kLinear,
  kCosine,  ///< Loshchilov and Hutter, "SGDR", ICLR 2017, one period
  kStep,    ///< times gamma every step_every updates
  kMultistep,
  kOneCycle,  ///< Smith and Topin, "Super-Convergence", 2018, without cycling momentum
  kPolynomial
};
inline constexpr std::array kLrKinds{LrKind::kConstant,  LrKind::kLinear,    LrKind::kCosine,
                                     LrKind::kStep,      LrKind::kMultistep, LrKind::kOneCycle,
                                     LrKind::kPolynomial};

constexpr std::string_view name_of(LrKind kind) {
  switch (kind) {
    case LrKind::kConstant: return "constant";
    case LrKind::kLinear: return "linear";
    case LrKind::kCosine: return "cosine";
    case LrKind::kStep: return "step";
    case LrKind::kMultistep: return "multistep";
    case LrKind::kOneCycle: return "one-cycle";
    case LrKind::kPolynomial: return "polynomial";
  }
  return "?";
}

/// The kind of that name; ConfigError for any other.
inline LrKind lr_kind(std::string_view name) {
  for (const LrKind kind : kLrKinds)
    if (name == name_of(kind)) return kind;
  throw ConfigError(
      "schedule '{}' is unknown; use constant, linear, cosine, step, multistep, one-cycle or "
      "polynomial",
      name);
}

inline constexpr std::size_t kMaxMilestones = 16;
/// A one-cycle schedule starts at its peak over this.
inline constexpr double kOneCycleRise = 25;

struct LrSchedule {
  LrKind kind = LrKind::kConstant;
  double lr = 0;      ///< peak
  double min_lr = 0;  ///< at the end, and the least after warm-up; not of constant
  /// Update i of the first w has lr (i + 1) / w; of one-cycle, the length of its rise.
  std::uint64_t warmup_updates = 0;
  std::uint64_t total_updates = 0;  ///< warm-up included
  std::uint64_t step_every = 1;     ///< of step: updates, counted from the first of the run; > 0
  double gamma = 0.1;               ///< of step and multistep
  /// Of multistep: updates before each drop. An array, to stay a plain value.
  std::array<std::uint64_t, kMaxMilestones> milestones{};
  std::uint32_t milestone_count = 0;
  double power = 1;  ///< of polynomial
};

/// ConfigError when there are kMaxMilestones already.
inline void add_milestone(LrSchedule& schedule, std::uint64_t update) {
  if (schedule.milestone_count == kMaxMilestones)
    throw ConfigError("a multistep schedule has at most {} milestones", kMaxMilestones);
  schedule.milestones[schedule.milestone_count++] = update;
}

/// How often a schedule has dropped by gamma before update `update`.
DDP_HOST_DEVICE inline std::uint64_t drops(const LrSchedule& s, std::uint64_t update) {
  if (s.kind == LrKind::kStep) return update / s.step_every;
  std::uint64_t count = 0;
  for (std::uint32_t i = 0; i < s.milestone_count; ++i)
    if (update >= s.milestones[i]) ++count;
  return count;
}

/// Height above min_lr, from 1 down to 0, when `progress` of the way from warm-up to the end is
/// done.
DDP_HOST_DEVICE inline double falling_height(const LrSchedule& s, double progress) {
  if (s.kind == LrKind::kLinear) return 1 - progress;
  if (s.kind == LrKind::kPolynomial) return std::pow(1 - progress, s.power);
  return (1 + std::cos(std::numbers::pi * progress)) / 2;
}

/// Learning rate of update `update`, counted from 0.
DDP_HOST_DEVICE inline double learning_rate(const LrSchedule& s, std::uint64_t update) {
  if (update < s.warmup_updates) {
    const auto length = static_cast<double>(s.warmup_updates);
    if (s.kind != LrKind::kOneCycle) return s.lr * static_cast<double>(update + 1) / length;
    const double rise = (1 - std::cos(std::numbers::pi * static_cast<double>(update) / length)) / 2;
    return s.lr * (1 + (kOneCycleRise - 1) * rise) / kOneCycleRise;
  }
  if (s.kind == LrKind::kConstant) return s.lr;
  if (s.kind == LrKind::kStep || s.kind == LrKind::kMultistep)
    return std::fmax(s.min_lr, s.lr * std::pow(s.gamma, static_cast<double>(drops(s, update))));
  if (update >= s.total_updates) return s.min_lr;
  const double progress = static_cast<double>(update - s.warmup_updates) /
                          static_cast<double>(s.total_updates - s.warmup_updates);
  return s.min_lr + (s.lr - s.min_lr) * falling_height(s, progress);
}

}  // namespace ddp
