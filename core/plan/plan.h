// Plan: what a rank does in one micro-step, fixed before training: ordered steps with their
// kernels, where each tensor lies, when each bucket is reduced. It is printed, hashed and executed,
// and never changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/comm/communicator.h"
#include "core/graph/graph.h"
#include "core/plan/bucket.h"

namespace ddp {

/// The blocks of memory a plan refers to; allocated once and shared by all plans of a run.
enum class Region : std::uint8_t {
  kArena,
  kInput,
  kParameters,         ///< of the master type
  kComputeParameters,  ///< their copy of the compute type, where that is another one
  kGradients,
  kOptimizer,
  kBuffers,     ///< running statistics of batch norm
  kStatistics,  ///< sums of the step's statistics, laid out as kBuffers
  kAverage,     ///< moving averages of the parameters, and behind them of the buffers
  kState
};
inline constexpr std::size_t kRegionCount = 10;
std::string_view name_of(Region region);

struct Placement {
  Region region = Region::kArena;
  std::size_t offset = 0;
  TensorType type;
};

/// One parameter in the flat slabs. Parameters, gradients and each optimizer state share element
/// offsets.
struct SlabSegment {
  ParamId parameter;
  std::string name;
  std::size_t offset = 0;  ///< elements from the start of the slab
  std::size_t elements = 0;
  bool decay = true;
};

/// Bucket `b` is elements [begin, end) of the gradient slab; its size is a multiple of world x 256
/// bytes, and the padding behind its last parameter stays zero.
struct Bucket {
  std::size_t begin = 0, end = 0;                   ///< elements
  std::size_t first_segment = 0, last_segment = 0;  ///< [first, last) of SlabLayout::segments
};

/// Running statistics of one layer in two slabs of the same layout: in kBuffers mean [C] and
/// variance [C], in kStatistics Σ count · mean [C], Σ count · variance [C] and Σ count.
struct StatisticsSegment {
  std::string name;        ///< of the layer
  std::size_t offset = 0;  ///< elements
  std::size_t channels = 0;
  double momentum = 0;
};

struct SlabLayout {
  DType dtype = DType::kF32;          ///< master type, of all slabs but kComputeParameters
  DType compute = DType::kF32;        ///< of kComputeParameters
  std::size_t elements = 0;           ///< of one slab, padding included
  std::vector<SlabSegment> segments;  ///< in the order in which gradients become final
  std::vector<Bucket> buckets;
  std::vector<StatisticsSegment> statistics;  ///< in the order of the graph
  std::size_t statistics_elements = 0;  ///< of kBuffers and of kStatistics; 0 without batch norm
  std::size_t bytes() const { return elements * size_of(dtype); }
  bool has_compute_copy() const { return compute != dtype; }
  std::size_t compute_copy_bytes() const {
    return has_compute_copy() ? elements * size_of(compute) : 0;
  }
  std::size_t statistics_bytes() const { return statistics_elements * size_of(dtype); }
};

struct ComputeStep {
  std::string name;  ///< of the op
  std::string kind;  ///< of its definition
  Phase phase = Phase::kForward;
  OpSignature signature;
  Kernel kernel;
  Cost cost;
  std::vector<Placement> inputs, outputs;
  Placement workspace;
};
/// Posts a collective on a range; it starts after the compute stream has reached this step and
/// completes event `signal`.
struct CommStep {
  Collective collective;
  Placement range;
  std::size_t signal = 0;  ///< index of an event of the plan
};
/// The compute stream goes on after event `signal`.
struct WaitStep {
  std::size_t signal = 0;
};
/// The compute stream enters a phase; the border at which time is taken.
struct MarkStep {
  Phase phase = Phase::kForward;
};
using Step = std::variant<ComputeStep, CommStep, WaitStep, MarkStep>;

struct PlanMemory {
  std::size_t arena = 0;  ///< bytes, with reuse
  std::size_t arena_without_reuse = 0;
  std::size_t arena_floor = 0;  ///< largest sum of tensors alive at one time
  std::size_t input = 0, parameters = 0, compute_parameters = 0, gradients = 0, optimizer = 0;
  std::size_t buffers = 0, statistics = 0, average = 0;
  std::size_t total() const {
    return arena + input + parameters + compute_parameters + gradients + optimizer + buffers +
           statistics + average;
  }
};

struct Plan {
  std::string name;  ///< "train" with ", first" and ", last" for what the micro-step is; "evaluate"
  std::vector<Step> steps;
  std::vector<Placement>
      inputs;  ///< where the host puts the micro-batch, in the order of graph inputs
  std::vector<std::string> input_names;
  std::vector<Placement>
      outputs;  ///< what the host may read after a run: of evaluation, see OutputIndex
  std::size_t events = 0;
  PlanMemory memory;
  Cost cost;
};

}  // namespace ddp
