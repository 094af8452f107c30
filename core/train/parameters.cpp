#include "core/train/parameters.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/hash.h"
#include "core/base/philox.h"
#include "core/checkpoint/file_layout.h"
#include "core/comm/rank_list.h"

namespace ddp {
namespace {

const Parameter& parameter_of(const Program& program, const SlabSegment& segment) {
  return program.graph().parameters()[segment.parameter.index()];
}

TensorType file_type(const Program& program, const Parameter& parameter) {
  return {parameter.file.file, program.layout().dtype};
}

/// Where a segment lies in device memory.
std::byte* device_data(const Program& program, const RunMemory& memory,
                       const SlabSegment& segment) {
  return memory.base(Region::kParameters) + segment.offset * size_of(program.layout().dtype);
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

void store(const Program& program, Backend& backend, const RunMemory& memory,
           const SlabSegment& segment, std::span<const std::byte> in_file_layout) {
  std::vector<std::byte> in_memory(in_file_layout.size());
  permute_from_file(parameter_of(program, segment).file, size_of(program.layout().dtype),
                    in_file_layout, in_memory);
  backend.upload(device_data(program, memory, segment), in_memory.data(), in_memory.size());
}

}  // namespace

void initialize_parameters(const Program& program, Backend& backend, const RunMemory& memory) {
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

std::vector<NamedTensor> export_parameters(const Program& program, Backend& backend,
                                           const RunMemory& memory) {
  std::vector<NamedTensor> tensors(program.graph().parameters().size());
  std::vector<std::byte> in_memory;
  for (const SlabSegment& segment : program.layout().segments) {
    const Parameter& parameter = parameter_of(program, segment);
    NamedTensor& tensor = tensors[segment.parameter.index()];
    tensor = {.name = parameter.name, .type = file_type(program, parameter), .bytes = {}};
    tensor.bytes.resize(tensor.type.bytes());
    in_memory.resize(tensor.type.bytes());
    backend.download(in_memory.data(), device_data(program, memory, segment), in_memory.size());
    permute_to_file(parameter.file, size_of(program.layout().dtype), in_memory, tensor.bytes);
  }
  return tensors;
}

void import_parameters(const Program& program, Backend& backend, const RunMemory& memory,
                       const SafetensorsFile& file) {
  for (const SlabSegment& segment : program.layout().segments) {
    const Parameter& parameter = parameter_of(program, segment);
    store(program, backend, memory, segment,
          file.tensor(parameter.name, file_type(program, parameter)).bytes);
  }
  for (const FileTensor& tensor : file.tensors())
    if (std::ranges::find(program.graph().parameters(), tensor.name, &Parameter::name) ==
        program.graph().parameters().end())
      throw StorageError("the weight file holds a tensor '{}' that the model does not have",
                         tensor.name);
}

void check_replicas(const Program& program, Backend& backend, const RunMemory& memory,
                    World& world) {
  std::vector<std::uint64_t> hashes;
  std::vector<std::byte> bytes;
  for (const SlabSegment& segment : program.layout().segments) {
    bytes.resize(segment.elements * size_of(program.layout().dtype));
    backend.download(bytes.data(), device_data(program, memory, segment), bytes.size());
    hashes.push_back(hash64(bytes));
  }
  const std::string mine(reinterpret_cast<const char*>(hashes.data()),
                         hashes.size() * sizeof(hashes[0]));
  const std::vector<std::string> all = world.gather(mine);
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    std::vector<std::string> values;
    for (int rank = 0; rank < world.size(); ++rank)
      values.push_back(
          all[static_cast<std::size_t>(rank)].substr(i * sizeof(hashes[0]), sizeof(hashes[0])));
    std::vector<int> different;
    for (int rank = 1; rank < world.size(); ++rank)
      if (values[static_cast<std::size_t>(rank)] != values[0]) different.push_back(rank);
    if (!different.empty())
      throw AgreedFailure(
          {.rank = different.front(),
           .code = ExitCode::kCommunication,
           .sentence = fmt::format(
               "parameter '{}' is not the same on all ranks: {} {} from rank 0. The replicas have "
               "drifted apart: check "
               "the memory and links of these devices, and start again from the last good weights",
               program.layout().segments[i].name, rank_list(different),
               different.size() == 1 ? "differs" : "differ")});
  }
}

}  // namespace ddp
