// Contributions go to the kernel by value, since their addresses are known when it runs only; so
// many at once as fit. One thread adds all contributions to an element, in their order.
#include <algorithm>
#include <array>
#include <limits>

#include "core/backend/cuda/kernel.cuh"
#include "core/ops/optimizer/commit_targets.h"

namespace ddp {
namespace {

constexpr int kThreads = 256;
constexpr int kN = cuda::kPack<__nv_bfloat16>;  // elements that a thread takes at a time
constexpr std::int64_t kBlockElements = 2 * kThreads * kN;  // and a block in all
constexpr int kMostEntries = 64;

/// One contribution. Those to one target follow each other.
struct Entry {
  const void* from;
  float* to;
  std::int64_t elements;
  std::int32_t first_block;  ///< of the target
  bool bf16;                 ///< otherwise F32
  bool store;                ///< replaces what is there
  bool joins;                ///< the target of the entry before
};

struct Chunk {
  Entry entries[kMostEntries];
  std::int32_t count, blocks;
  bool aligned;  ///< all addresses, to kN elements
};
static_assert(sizeof(Chunk) <= 4096, "kernels take at most 4 KiB of parameters");

/// The first entry of the target that block `block` works on.
__device__ int entry_of(const Chunk& chunk, std::int32_t block) {
  int low = 0, high = chunk.count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (chunk.entries[middle].first_block <= block ? low : high) = middle;
  }
  while (chunk.entries[low].joins) --low;
  return low;
}

template <int N>
__device__ void add_pack(const Entry& entry, std::int64_t at, float (&sum)[N]) {
  const auto add = [&](const auto& pack) {
    for (int j = 0; j < N; ++j) {
      const float value = cuda::to_float(pack.element[j]);
      sum[j] = entry.store ? value : sum[j] + value;
    }
  };
  if (entry.bf16)
    add(cuda::load<__nv_bfloat16, N>(static_cast<const __nv_bfloat16*>(entry.from) + at));
  else
    add(cuda::load<float, N>(static_cast<const float*>(entry.from) + at));
}

template <int N>
__device__ void commit_elements(const Chunk& chunk, int first, std::int64_t at) {
  const Entry& target = chunk.entries[first];
  cuda::Pack<float, N> result{};
  if (!target.store) result = cuda::load<float, N>(target.to + at);
  add_pack(target, at, result.element);
  for (int i = first + 1; i < chunk.count && chunk.entries[i].joins; ++i)
    add_pack(chunk.entries[i], at, result.element);
  cuda::store<float, N>(target.to + at, result);
}

__global__ void __launch_bounds__(kThreads) commit_kernel(const __grid_constant__ Chunk chunk) {
  const auto block = static_cast<std::int32_t>(blockIdx.x);
  const int first = entry_of(chunk, block);
  const Entry& target = chunk.entries[first];
  const std::int64_t begin = (block - target.first_block) * kBlockElements;
  const std::int64_t left = target.elements - begin;
  const auto elements = static_cast<int>(left < kBlockElements ? left : kBlockElements);
  const int packs = chunk.aligned ? elements / kN : 0;
  const auto thread = static_cast<int>(threadIdx.x);
  for (int p = thread; p < packs; p += kThreads) commit_elements<kN>(chunk, first, begin + p * kN);
  for (int e = packs * kN + thread; e < elements; e += kThreads)
    commit_elements<1>(chunk, first, begin + e);
}

/// A contribution before its addresses are known.
struct Contribution {
  std::size_t input, output;
  bool store, joins;
};

std::vector<Contribution> contributions_of(const OpSignature& s) {
  const bool accumulate = s.attributes.integer("accumulate") != 0;
  std::vector<Contribution> contributions;
  for (const CommitTarget& target : commit_targets(s)) {
    DDP_CHECK(s.outputs[target.output].dtype == DType::kF32, "a slab on the GPU is F32, not {}",
              name_of(s.outputs[target.output].dtype));
    for (const std::size_t input : target.inputs) {
      const bool first = input == target.inputs.front();
      contributions.push_back({.input = input,
                               .output = target.output,
                               .store = first && !accumulate,
                               .joins = !first});
    }
  }
  return contributions;
}

Chunk chunk_of(std::span<const Contribution> contributions, const KernelArgs& args) {
  Chunk chunk{};
  std::uintptr_t floats = 0, halves = 0;
  for (const Contribution& c : contributions) {
    const TensorView& from = args.inputs[c.input];
    Entry& entry = chunk.entries[chunk.count];
    entry = {.from = from.data,
             .to = args.outputs[c.output].as<float>(),
             .elements = from.type.elements(),
             .first_block = chunk.blocks,
             .bf16 = from.type.dtype == DType::kBF16,
             .store = c.store,
             .joins = c.joins && chunk.count > 0};
    if (entry.joins)
      entry.first_block = chunk.entries[chunk.count - 1].first_block;
    else
      chunk.blocks +=
          static_cast<std::int32_t>((entry.elements + kBlockElements - 1) / kBlockElements);
    (entry.bf16 ? halves : floats) |= reinterpret_cast<std::uintptr_t>(entry.from);
    floats |= reinterpret_cast<std::uintptr_t>(entry.to);
    ++chunk.count;
  }
  chunk.aligned = floats % sizeof(cuda::Pack<float, kN>) == 0 &&
                  halves % sizeof(cuda::Pack<__nv_bfloat16, kN>) == 0;
  return chunk;
}

Kernel commit_factory(const OpSignature& s, const KernelContext&) {
  return {.run = [contributions = contributions_of(s)](const KernelArgs& args) {
    for (std::size_t i = 0; i < contributions.size(); i += kMostEntries) {
      const std::size_t count = std::min<std::size_t>(kMostEntries, contributions.size() - i);
      const Chunk chunk = chunk_of(std::span(contributions).subspan(i, count), args);
      commit_kernel<<<static_cast<unsigned>(chunk.blocks), kThreads, 0, cuda::stream_of(args)>>>(
          chunk);
      cuda::check_launch("commit");
    }
  }};
}
DDP_REGISTER_CUDA_KERNEL("commit", commit_factory);

}  // namespace
}  // namespace ddp
