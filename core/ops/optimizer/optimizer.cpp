// Definitions of the slab ops. Their outputs cannot be inferred: the plan gives them, the kernel
// factories check them.
#include "core/ops/optimizer/optimizer.h"

#include "core/ops/optimizer/segments.h"

namespace ddp {
namespace {

std::vector<TensorType> no_outputs(const OpSignature&) { return {}; }

/// Inputs are read once, outputs are read and written.
double bytes_updated(const OpSignature& s) {
  return 2 * bytes_touched(s) -
         bytes_touched({.inputs = s.inputs, .outputs = {}, .attributes = {}});
}

template <int kFlopsPerElement>
Cost update_cost(const OpSignature& s) {
  return {.flops = kFlopsPerElement * static_cast<double>(s.inputs[0].elements()),
          .bytes = bytes_updated(s)};
}

Cost commit_cost(const OpSignature& s) {
  if (s.attributes.integer("accumulate") == 0) return {.flops = 0, .bytes = bytes_touched(s)};
  double elements = 0;
  for (const TensorType& input : s.inputs) elements += static_cast<double>(input.elements());
  return {.flops = elements, .bytes = bytes_updated(s)};
}

const OpDefinition kBeginStep{
    .name = "begin_step",
    .infer = no_outputs,
    .cost = [](const OpSignature&) { return Cost{.flops = 0, .bytes = sizeof(StepState)}; },
    .has_side_effect = true,
};
const OpDefinition kCommit{
    .name = "commit", .infer = no_outputs, .cost = commit_cost, .has_side_effect = true};
const OpDefinition kFinishStep{
    .name = "finish_step", .infer = no_outputs, .cost = update_cost<2>, .has_side_effect = true};
const OpDefinition kSgd{
    .name = "sgd", .infer = no_outputs, .cost = update_cost<8>, .has_side_effect = true};
const OpDefinition kLars{
    .name = "lars", .infer = no_outputs, .cost = update_cost<12>, .has_side_effect = true};
const OpDefinition kAdamW{
    .name = "adamw", .infer = no_outputs, .cost = update_cost<15>, .has_side_effect = true};
const OpDefinition kLion{
    .name = "lion", .infer = no_outputs, .cost = update_cost<10>, .has_side_effect = true};
const OpDefinition kEma{
    .name = "ema", .infer = no_outputs, .cost = update_cost<3>, .has_side_effect = true};

DDP_REGISTER_OP(kBeginStep);
DDP_REGISTER_OP(kCommit);
DDP_REGISTER_OP(kFinishStep);
DDP_REGISTER_OP(kSgd);
DDP_REGISTER_OP(kLars);
DDP_REGISTER_OP(kAdamW);
DDP_REGISTER_OP(kLion);
DDP_REGISTER_OP(kEma);

}  // namespace

Attributes commit_attributes(const std::vector<std::size_t>& targets, bool accumulate) {
  return {{"targets", std::vector<double>(targets.begin(), targets.end())},
          {"accumulate", std::int64_t{accumulate}}};
}

Attributes finish_step_attributes(const FinishStepOptions& options) {
  return {{"nominal", options.nominal},
          {"clip_norm", options.clip_norm},
          {"on_nan", std::string(options.stop_on_nan ? "stop" : "skip")},
          {"schedule", std::string(name_of(options.schedule.kind))},
          {"lr", options.schedule.lr},
          {"min_lr", options.schedule.min_lr},
          {"warmup_updates", static_cast<std::int64_t>(options.schedule.warmup_updates)},
          {"total_updates", static_cast<std::int64_t>(options.schedule.total_updates)},
          {"step_every", static_cast<std::int64_t>(options.schedule.step_every)},
          {"gamma", options.schedule.gamma},
          {"milestones", std::vector<double>(options.schedule.milestones.begin(),
                                             options.schedule.milestones.begin() +
                                                 options.schedule.milestone_count)},
          {"power", options.schedule.power}};
}

Attributes sgd_attributes(const SgdOptions& options,
                          const std::vector<OptimizerSegment>& segments) {
  return {{"momentum", options.momentum},
          {"nesterov", std::int64_t{options.nesterov}},
          {"segments", segments_attribute(segments)}};
}

Attributes lars_attributes(const LarsOptions& options,
                           const std::vector<OptimizerSegment>& segments) {
  return {{"momentum", options.momentum},
          {"trust", options.trust},
          {"segments", segments_attribute(segments)}};
}

Attributes adamw_attributes(const AdamWOptions& options,
                            const std::vector<OptimizerSegment>& segments) {
  return {{"beta1", options.beta1},
          {"beta2", options.beta2},
          {"eps", options.eps},
          {"segments", segments_attribute(segments)}};
}

Attributes lion_attributes(const LionOptions& options,
                           const std::vector<OptimizerSegment>& segments) {
  return {{"beta1", options.beta1},
          {"beta2", options.beta2},
          {"segments", segments_attribute(segments)}};
}

Attributes ema_attributes(double decay) { return {{"decay", decay}}; }

}  // namespace ddp
