#include "core/plan/executor.h"

#include <algorithm>
#include <numeric>

#include "core/base/overloaded.h"
#include "core/tensor/finite.h"

namespace ddp {
namespace {

std::size_t bytes_of(const Plan& plan, Region region) {
  switch (region) {
    case Region::kArena: return plan.memory.arena;
    case Region::kInput: return plan.memory.input;
    case Region::kParameters: return plan.memory.parameters;
    case Region::kComputeParameters: return plan.memory.compute_parameters;
    case Region::kGradients: return plan.memory.gradients;
    case Region::kOptimizer: return plan.memory.optimizer;
    case Region::kBuffers: return plan.memory.buffers;
    case Region::kStatistics: return plan.memory.statistics;
    case Region::kAverage: return plan.memory.average;
    case Region::kState: return sizeof(StepState);
  }
  return 0;
}

/// Of a tensor on the device.
bool is_finite(Backend& backend, const TensorView& view) {
  std::vector<std::byte> copy(view.bytes());
  backend.download(copy.data(), view.data, copy.size());
  return all_finite({copy.data(), view.type});
}

bool is_parameter(Region region) {
  return region == Region::kParameters || region == Region::kComputeParameters;
}

Activity activity_of(Phase phase) {
  switch (phase) {
    case Phase::kForward: return Activity::kForward;
    case Phase::kBackward: return Activity::kBackward;
    case Phase::kOptimizer: return Activity::kOptimizer;
  }
  return Activity::kOther;
}

}  // namespace

std::array<std::size_t, kRegionCount> region_bytes(const std::vector<const Plan*>& plans) {
  std::array<std::size_t, kRegionCount> bytes{};
  for (std::size_t r = 0; r < kRegionCount; ++r)
    for (const Plan* plan : plans)
      bytes[r] = std::max(bytes[r], bytes_of(*plan, static_cast<Region>(r)));
  return bytes;
}

RunMemory::RunMemory(Backend& backend, const std::vector<const Plan*>& plans, Buffer gradients) {
  const std::array<std::size_t, kRegionCount> bytes = region_bytes(plans);
  buffers_[static_cast<std::size_t>(Region::kGradients)] = std::move(gradients);
  for (std::size_t r = 0; r < kRegionCount; ++r) {
    if (buffers_[r].size() == 0) buffers_[r] = backend.allocate(bytes[r]);
    DDP_CHECK(buffers_[r].size() >= bytes[r], "{} bytes for {} of {}", buffers_[r].size(),
              name_of(static_cast<Region>(r)), bytes[r]);
  }
  const StepState state;
  backend.upload(base(Region::kState), &state, sizeof(state));
}

MemoryMap RunMemory::map() const {
  MemoryMap map;
  for (std::size_t r = 0; r < kRegionCount; ++r) map.bases[r] = base(static_cast<Region>(r));
  return map;
}

std::size_t RunMemory::allocated_bytes() const {
  return std::accumulate(buffers_.begin(), buffers_.end(), std::size_t{0},
                         [](std::size_t sum, const Buffer& buffer) { return sum + buffer.size(); });
}

Executor::Executor(const Plan& plan, Backend& backend, const MemoryMap& memory,
                   Communicator* communicator)
    : plan_(plan),
      backend_(backend),
      communicator_(communicator),
      bound_(plan.steps.size()),
      ranges_(plan.steps.size()) {
  auto* const state = reinterpret_cast<StepState*>(memory.base(Region::kState));
  for (const Placement& input : plan.inputs) inputs_.push_back(memory.view(input));
  for (const Placement& output : plan.outputs) outputs_.push_back(memory.view(output));
  for (std::size_t i = 0; i < plan.events; ++i) {
    signals_.push_back(backend.make_event());
    ready_.push_back(backend.make_event());
  }
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (const auto* step = std::get_if<ComputeStep>(&plan.steps[i])) {
      BoundCompute& bound = bound_[i];
      for (const Placement& input : step->inputs) bound.inputs.push_back(memory.view(input));
      for (const Placement& output : step->outputs) bound.outputs.push_back(memory.view(output));
      bound.args = {.inputs = bound.inputs,
                    .outputs = bound.outputs,
                    .workspace = {static_cast<std::byte*>(memory.view(step->workspace).data),
                                  step->kernel.workspace_bytes},
                    .state = state,
                    .stream = &backend.compute()};
    } else if (const auto* comm = std::get_if<CommStep>(&plan.steps[i])) {
      DDP_CHECK(communicator != nullptr, "plan '{}' communicates, but there is no communicator",
                plan.name);
      ranges_[i] = memory.view(comm->range);
    }
  }
}

void Executor::run() {
  Stream& compute = backend_.compute();
  Phase phase = Phase::kForward;
  for (std::size_t i = 0; i < plan_.steps.size(); ++i)
    std::visit(overloaded{
                   [&](const ComputeStep& step) { step.kernel.run(bound_[i].args); },
                   [&](const CommStep& step) {
                     Event& ready = *ready_[step.signal];
                     compute.record(ready);
                     communicator_->post(step.collective, ranges_[i], /*after=*/ready,
                                         /*signal=*/*signals_[step.signal]);
                   },
                   [&](const WaitStep& step) {
                     if (!waits(i - 1)) backend_.enter(Activity::kExposed);
                     compute.wait_for(*signals_[step.signal]);
                     communicator_->check();
                     if (!waits(i + 1)) backend_.enter(activity_of(phase));
                   },
                   [&](const MarkStep& step) {
                     phase = step.phase;
                     backend_.enter(activity_of(phase));
                   },
               },
               plan_.steps[i]);
  backend_.enter(Activity::kOther);
}

bool Executor::waits(std::size_t step) const {
  return step < plan_.steps.size() && std::holds_alternative<WaitStep>(plan_.steps[step]);
}

std::optional<std::string> Executor::first_nonfinite() {
  for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
    const auto* step = std::get_if<ComputeStep>(&plan_.steps[i]);
    if (step == nullptr || step->phase == Phase::kOptimizer) continue;
    // A parameter that is already bad is the cause, not the layer that reads it.
    for (std::size_t in = 0; in < step->inputs.size(); ++in)
      if (is_parameter(step->inputs[in].region) && !is_finite(backend_, bound_[i].inputs[in]))
        return fmt::format("a parameter of {}", step->name);
    step->kernel.run(bound_[i].args);
    for (const TensorView& output : bound_[i].outputs)
      if (!is_finite(backend_, output))
        return fmt::format("the output of {} ({}, {})", step->name, step->kind,
                           name_of(step->phase));
  }
  return std::nullopt;
}

}  // namespace ddp
