#include "core/train/parameters.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <set>

#include "core/base/hash.h"
#include "core/base/philox.h"
#include "core/checkpoint/file_layout.h"
#include "core/comm/gather.h"
#include "core/comm/rank_list.h"
#include "core/tensor/finite.h"

namespace ddp {
namespace {

const Parameter& parameter_of(const Program& program, const SlabSegment& segment) {
  return program.graph().parameters()[segment.parameter.index()];
}

TensorType file_type(const Program& program, const Parameter& parameter) {
  return {parameter.file.file, program.layout().dtype};
}

/// Where a segment lies.
Placement place_of(const Program& program, const SlabSegment& segment) {
  const DType dtype = program.layout().dtype;
  return {.region = Region::kParameters,
          .offset = segment.offset * size_of(dtype),
          .type = {Shape{static_cast<std::int64_t>(segment.elements)}, dtype}};
}

/// Mean or variance of one layer: its name in files, its place, and how its elements start.
struct RunningTensor {
  std::string name;
  Placement place;
  double initial = 0;
};

std::vector<RunningTensor> running_tensors(const Program& program) {
  const DType dtype = program.layout().dtype;
  std::vector<RunningTensor> tensors;
  for (const StatisticsSegment& segment : program.layout().statistics) {
    const auto add = [&](std::string_view which, std::size_t offset, double initial) {
      tensors.push_back(
          {.name = fmt::format("{}.{}", segment.name, which),
           .place = {.region = Region::kBuffers,
                     .offset = offset * size_of(dtype),
                     .type = {Shape{static_cast<std::int64_t>(segment.channels)}, dtype}},
           .initial = initial});
    };
    add("running_mean", segment.offset, 0);
    add("running_var", segment.offset + segment.channels, 1);
  }
  return tensors;
}

/// Updates a layer's statistics have seen, as PyTorch counts them.
std::string batches_tracked(const StatisticsSegment& segment) {
  return segment.name + ".num_batches_tracked";
}
const TensorType kBatchesTracked{Shape{}, DType::kI64};

/// A tensor that all replicas must hold alike.
struct SharedTensor {
  std::string name;
  Placement place;
};

std::vector<SharedTensor> shared_tensors(const Program& program) {
  std::vector<SharedTensor> tensors;
  for (const SlabSegment& segment : program.layout().segments)
    tensors.push_back({segment.name, place_of(program, segment)});
  for (const RunningTensor& running : running_tensors(program))
    tensors.push_back({running.name, running.place});
  return tensors;
}

template <class T>
void fill_initial(const Parameter& parameter, PhiloxKey key, std::span<T> elements) {
  const double scale = parameter.init.scale;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const PhiloxBlock r = philox(key, 0, i, 0);
    double value = 0;
    switch (parameter.init.kind) {
      case Init::Kind::kZero: break;
      case Init::Kind::kOne: value = 1; break;
      case Init::Kind::kUniform: value = scale * (2 * uniform_double(r[0], r[1]) - 1); break;
      case Init::Kind::kNormal:  // Box-Muller; 1 - u is never 0
        value = scale * std::sqrt(-2 * std::log(1 - uniform_double(r[0], r[1]))) *
                std::cos(2 * std::numbers::pi * uniform_double(r[2], r[3]));
        break;
    }
    elements[i] = static_cast<T>(value);
  }
}

template <class T>
void fill_as(Backend& backend, const TensorView& view, double value) {
  const std::vector<T> elements(static_cast<std::size_t>(view.type.elements()),
                                static_cast<T>(value));
  backend.upload(view.data, elements.data(), view.bytes());
}
void fill(Backend& backend, const TensorView& view, double value) {
  if (view.type.dtype == DType::kF64)
    fill_as<double>(backend, view, value);
  else
    fill_as<float>(backend, view, value);
}

void store(const Program& program, Backend& backend, const MemoryMap& memory,
           const SlabSegment& segment, std::span<const std::byte> in_file_layout) {
  std::vector<std::byte> in_memory(in_file_layout.size());
  permute_from_file(parameter_of(program, segment).file, size_of(program.layout().dtype),
                    in_file_layout, in_memory);
  backend.upload(memory.view(place_of(program, segment)).data, in_memory.data(), in_memory.size());
}

}  // namespace

void initialize_parameters(const Program& program, Backend& backend, const MemoryMap& memory) {
  for (const RunningTensor& running : running_tensors(program))
    fill(backend, memory.view(running.place), running.initial);
  for (const SlabSegment& segment : program.layout().segments) {
    const Parameter& parameter = parameter_of(program, segment);
    const PhiloxKey key = philox_key(program.options().seed, RandomStream::kInit,
                                     hash64(std::as_bytes(std::span(parameter.name))));
    std::vector<std::byte> bytes(file_type(program, parameter).bytes());
    if (program.layout().dtype == DType::kF64)
      fill_initial(parameter, key,
                   std::span(reinterpret_cast<double*>(bytes.data()), segment.elements));
    else
      fill_initial(parameter, key,
                   std::span(reinterpret_cast<float*>(bytes.data()), segment.elements));
    store(program, backend, memory, segment, bytes);
  }
}

MemoryMap averaged_weights(const Program& program, const MemoryMap& memory) {
  std::byte* averages = memory.base(Region::kAverage);
  return memory.with(Region::kParameters, averages)
      .with(Region::kBuffers, averages + program.layout().bytes());
}

void start_averages(const Program& program, Backend& backend, const MemoryMap& memory) {
  if (program.options().optimizer.ema == 0) return;
  const MemoryMap averages = averaged_weights(program, memory);
  std::vector<std::byte> bytes;
  const auto copy = [&](Region region, std::size_t count) {
    bytes.resize(count);
    backend.download(bytes.data(), memory.base(region), count);
    backend.upload(averages.base(region), bytes.data(), count);
  };
  copy(Region::kParameters, program.layout().bytes());
  copy(Region::kBuffers, program.layout().statistics_bytes());
}

std::vector<NamedTensor> export_parameters(const Program& program, Backend& backend,
                                           const MemoryMap& memory) {
  std::vector<NamedTensor> tensors(program.graph().parameters().size());
  std::vector<std::byte> in_memory;
  for (const SlabSegment& segment : program.layout().segments) {
    const Parameter& parameter = parameter_of(program, segment);
    NamedTensor& tensor = tensors[segment.parameter.index()];
    tensor = {.name = parameter.name, .type = file_type(program, parameter), .bytes = {}};
    tensor.bytes.resize(tensor.type.bytes());
    in_memory.resize(tensor.type.bytes());
    backend.download(in_memory.data(), memory.view(place_of(program, segment)).data,
                     in_memory.size());
    permute_to_file(parameter.file, size_of(program.layout().dtype), in_memory, tensor.bytes);
  }
  for (const RunningTensor& running : running_tensors(program)) {
    NamedTensor tensor{.name = running.name, .type = running.place.type, .bytes = {}};
    tensor.bytes.resize(tensor.type.bytes());
    backend.download(tensor.bytes.data(), memory.view(running.place).data, tensor.bytes.size());
    tensors.push_back(std::move(tensor));
  }
  StepState state;
  backend.download(&state, memory.base(Region::kState), sizeof(state));
  for (const StatisticsSegment& segment : program.layout().statistics) {
    NamedTensor tensor{.name = batches_tracked(segment), .type = kBatchesTracked, .bytes = {}};
    tensor.bytes.resize(tensor.type.bytes());
    std::memcpy(tensor.bytes.data(), &state.update, tensor.bytes.size());
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::optional<std::string> first_nonfinite_parameter(const Program& program, Backend& backend,
                                                     const MemoryMap& memory) {
  for (NamedTensor& tensor : export_parameters(program, backend, memory))
    if (!all_finite({tensor.bytes.data(), tensor.type})) return tensor.name;
  return std::nullopt;
}

void import_parameters(const Program& program, Backend& backend, const MemoryMap& memory,
                       const SafetensorsFile& file) {
  std::set<std::string_view> known;
  for (const SlabSegment& segment : program.layout().segments) {
    const Parameter& parameter = parameter_of(program, segment);
    store(program, backend, memory, segment,
          file.tensor(parameter.name, file_type(program, parameter)).bytes);
    known.insert(parameter.name);
  }
  const std::vector<RunningTensor> running = running_tensors(program);
  for (const RunningTensor& tensor : running) {
    const std::span<const std::byte> bytes = file.tensor(tensor.name, tensor.place.type).bytes;
    backend.upload(memory.view(tensor.place).data, bytes.data(), bytes.size());
    known.insert(tensor.name);
  }
  const auto counts_batches = [&](std::string_view name) {
    return std::ranges::any_of(program.layout().statistics, [&](const StatisticsSegment& segment) {
      return name == batches_tracked(segment);
    });
  };
  for (const FileTensor& tensor : file.tensors())
    if (!known.contains(tensor.name) && !counts_batches(tensor.name))
      throw StorageError("the weight file holds a tensor '{}' that the model does not have",
                         tensor.name);
}

void check_replicas(const Program& program, Backend& backend, const MemoryMap& memory,
                    World& world) {
  std::vector<std::uint64_t> hashes;
  std::vector<std::byte> bytes;
  const std::vector<SharedTensor> tensors = shared_tensors(program);
  for (const SharedTensor& tensor : tensors) {
    bytes.resize(tensor.place.type.bytes());
    backend.download(bytes.data(), memory.view(tensor.place).data, bytes.size());
    hashes.push_back(hash64(bytes));
  }
  const std::vector<std::uint64_t> all = gather_elements(world, hashes);  // [ranks, tensors]
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    std::vector<int> different;
    for (int rank = 1; rank < world.size(); ++rank)
      if (all[static_cast<std::size_t>(rank) * hashes.size() + i] != all[i])
        different.push_back(rank);
    if (!different.empty())
      throw AgreedFailure(
          {.rank = different.front(),
           .code = ExitCode::kCommunication,
           .sentence = fmt::format(
               "'{}' is not the same on all ranks: {} {} from rank 0. The replicas have "
               "drifted apart: check "
               "the memory and links of these devices, and start again from the last good weights",
               tensors[i].name, rank_list(different),
               different.size() == 1 ? "differs" : "differ")});
  }
}

}  // namespace ddp
