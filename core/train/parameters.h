// Parameters of a program as named tensors: how they start, how they are compared between ranks,
// and how they go to and come from weight files. The slab's layout stays inside; names and file
// layouts are what the outside sees.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/safetensors.h"
#include "core/comm/world.h"
#include "core/plan/executor.h"
#include "core/train/program.h"

namespace ddp {

/// Fills the parameter slab, a pure function of (seed, parameter name, element in file order), and
/// the buffers: running means start at 0, running variances at 1.
void initialize_parameters(const Program& program, Backend& backend, const MemoryMap& memory);

/// The memory of a program with EMA, with the averages in the place of the weights and running
/// statistics: for evaluating and exporting them.
MemoryMap averaged_weights(const Program& program, const MemoryMap& memory);

/// Starts the averages as a copy of the weights; nothing without EMA.
void start_averages(const Program& program, Backend& backend, const MemoryMap& memory);

/// A parameter outside of the slab: file layout, own memory.
struct NamedTensor {
  std::string name;
  TensorType type;
  std::vector<std::byte> bytes;
};

/// Copies of all parameters in file layout, in the order of the graph, then of running means and
/// variances, and for each of those layers the number of updates as "num_batches_tracked" (I64).
std::vector<NamedTensor> export_parameters(const Program& program, Backend& backend,
                                           const MemoryMap& memory);

/// Name of the first parameter or running average that holds a NaN or an infinity.
std::optional<std::string> first_nonfinite_parameter(const Program& program, Backend& backend,
                                                     const MemoryMap& memory);

/// The inverse: fills the slab and the buffers from a weight file, which may leave
/// num_batches_tracked out. StorageError (exit 7) naming the tensor when one
/// is missing, has another type, or has no place in the model.
void import_parameters(const Program& program, Backend& backend, const MemoryMap& memory,
                       const SafetensorsFile& file);

/// Collective. Compares the checksum of every parameter and running average between ranks;
/// AgreedFailure (exit 6) naming the first tensor that differs and the ranks.
void check_replicas(const Program& program, Backend& backend, const MemoryMap& memory,
                    World& world);

}  // namespace ddp
