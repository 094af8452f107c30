// Learning rate as a function of the update number: linear warm-up, then constant, linear or cosine
// (Loshchilov and Hutter, "SGDR", ICLR 2017, one period). Plain arithmetic on a value type, so that
// the same code runs inside the step on any device and in the start-up table.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

#include "core/base/error.h"

namespace ddp {

enum class LrKind : std::uint8_t { kConstant, kLinear, kCosine };

constexpr std::string_view name_of(LrKind kind) {
  switch (kind) {
    case LrKind::kConstant: return "constant";
    case LrKind::kLinear: return "linear";
    case LrKind::kCosine: return "cosine";
  }
  return "?";
}

/// The kind called "constant", "linear" or "cosine"; ConfigError otherwise.
inline LrKind lr_kind(std::string_view name) {
  for (const LrKind kind : {LrKind::kConstant, LrKind::kLinear, LrKind::kCosine})
    if (name == name_of(kind)) return kind;
  throw ConfigError("schedule '{}' is unknown; use constant, linear or cosine", name);
}

struct LrSchedule {
  LrKind kind = LrKind::kConstant;
  double lr = 0;                     ///< peak
  double min_lr = 0;                 ///< at update total_updates and later, unless constant
  std::uint64_t warmup_updates = 0;  ///< update i of the first w has lr (i + 1) / w
  std::uint64_t total_updates = 0;   ///< warm-up included
};

/// Learning rate of update `update`, counted from 0.
inline double learning_rate(const LrSchedule& s, std::uint64_t update) {
  if (update < s.warmup_updates)
    return s.lr * static_cast<double>(update + 1) / static_cast<double>(s.warmup_updates);
  if (s.kind == LrKind::kConstant) return s.lr;
  if (update >= s.total_updates) return s.min_lr;
  const double progress = static_cast<double>(update - s.warmup_updates) /
                          static_cast<double>(s.total_updates - s.warmup_updates);
  const double height =
      s.kind == LrKind::kLinear ? 1 - progress : (1 + std::cos(std::numbers::pi * progress)) / 2;
  return s.min_lr + (s.lr - s.min_lr) * height;
}

}  // namespace ddp
