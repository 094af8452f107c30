#include "core/ops/optimizer/options.h"

namespace ddp {
namespace {

LrSchedule schedule_from(const Attributes& attributes) {
  const auto updates = [&](std::string_view name) {
    return static_cast<std::uint64_t>(attributes.integer(name));
  };
  LrSchedule schedule{.kind = lr_kind(attributes.text("schedule")),
                      .lr = attributes.real("lr"),
                      .min_lr = attributes.real("min_lr"),
                      .warmup_updates = updates("warmup_updates"),
                      .total_updates = updates("total_updates"),
                      .step_every = updates("step_every"),
                      .gamma = attributes.real("gamma"),
                      .power = attributes.real("power")};
  for (const double milestone : attributes.list("milestones"))
    add_milestone(schedule, static_cast<std::uint64_t>(milestone));
  return schedule;
}

}  // namespace

FinishStepOptions finish_step_options(const Attributes& attributes) {
  return {.nominal = attributes.real("nominal"),
          .clip_norm = attributes.real("clip_norm"),
          .stop_on_nan = attributes.text("on_nan") == "stop",
          .schedule = schedule_from(attributes)};
}

SgdOptions sgd_options(const Attributes& attributes) {
  return {.momentum = attributes.real("momentum"), .nesterov = attributes.integer("nesterov") != 0};
}

LarsOptions lars_options(const Attributes& attributes) {
  return {.momentum = attributes.real("momentum"), .trust = attributes.real("trust")};
}

AdamWOptions adamw_options(const Attributes& attributes) {
  return {.beta1 = attributes.real("beta1"),
          .beta2 = attributes.real("beta2"),
          .eps = attributes.real("eps")};
}

LionOptions lion_options(const Attributes& attributes) {
  return {.beta1 = attributes.real("beta1"), .beta2 = attributes.real("beta2")};
}

}  // namespace ddp
