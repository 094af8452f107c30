// Executor: runs a plan on a backend. Everything is bound when it is made: views are resolved,
// events exist, nothing is allocated or decided while a step runs.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "core/plan/plan.h"

namespace ddp {

/// Where each region lies: what an executor binds a plan to. A copy with another base for one
/// region runs the same plan on other parameters.
struct MemoryMap {
  std::array<std::byte*, kRegionCount> bases{};

  std::byte* base(Region region) const { return bases[static_cast<std::size_t>(region)]; }
  TensorView view(const Placement& placement) const {
    return {base(placement.region) + placement.offset, placement.type};
  }
  MemoryMap with(Region region, std::byte* base) const {
    MemoryMap map = *this;
    map.bases[static_cast<std::size_t>(region)] = base;
    return map;
  }
};

/// The largest of each region over the plans: what a run of them has to store.
std::array<std::size_t, kRegionCount> region_bytes(const std::vector<const Plan*>& plans);

/// Device memory of one rank, by region; shared by all plans of a run. Evaluation brings its own
/// state region.
class RunMemory {
 public:
  /// Allocates region_bytes of the plans, with one StepState as it starts.
  /// The gradients lie in `gradients` if it is not empty: memory that a communicator has made.
  RunMemory(Backend& backend, const std::vector<const Plan*>& plans, Buffer gradients = {});

  std::byte* base(Region region) const { return buffers_[static_cast<std::size_t>(region)].data(); }
  std::size_t bytes(Region region) const {
    return buffers_[static_cast<std::size_t>(region)].size();
  }
  TensorView view(const Placement& placement) const { return map().view(placement); }
  MemoryMap map() const;
  operator MemoryMap() const { return map(); }  // NOLINT: whoever has memory has the map of it
  std::size_t allocated_bytes() const;

 private:
  std::array<Buffer, kRegionCount> buffers_;
};

class Executor {
 public:
  /// `communicator` may be null when the plan has no CommStep. Everything passed, and the memory
  /// behind the map, must outlive the executor.
  Executor(const Plan& plan, Backend& backend, const MemoryMap& memory, Communicator* communicator);

  /// Enqueues all steps; Backend::phase_times says where the time went. Throws what a failed
  /// collective throws.
  void run();

  /// Runs the compute steps up to the optimizer one by one, without communication, and returns the
  /// name of the first tensor with a value that is NaN or infinite; nothing if all are finite. For
  /// naming the culprit of a diverged step.
  std::optional<std::string> first_nonfinite();

  const Plan& plan() const { return plan_; }
  /// Where the host writes input `i` of the plan.
  TensorView input(std::size_t i) const { return inputs_[i]; }
  /// Where the host reads output `i` of the plan after a run.
  TensorView output(std::size_t i) const { return outputs_[i]; }

 private:
  struct BoundCompute {
    std::vector<TensorView> inputs, outputs;
    KernelArgs args;
  };

  /// Whether there is such a step, and it is a WaitStep.
  bool waits(std::size_t step) const;

  const Plan& plan_;
  Backend& backend_;
  Communicator* communicator_;
  std::vector<TensorView> inputs_, outputs_;
  std::vector<BoundCompute> bound_;  ///< by step; empty for others
  std::vector<TensorView> ranges_;   ///< by step, of CommSteps
  std::vector<std::unique_ptr<Event>> signals_;
  std::vector<std::unique_ptr<Event>> ready_;  ///< by signal: what a collective waits for
};

}  // namespace ddp
