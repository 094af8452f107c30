// One step on all elements of a slab: one pass over memory, from a table of parts of segments. A
// step is one of *_update.h: Step::of(options, state) gives what all segments share,
// step.update<float>(segment) what is called with each gradient and the elements to change.
#pragma once

#include <algorithm>
#include <utility>

#include "core/backend/cuda/kernel.cuh"
#include "core/backend/cuda/device_table.h"
#include "core/ops/optimizer/segments.h"

namespace ddp::cuda {

/// Segments and their parts as kernels see them.
struct SegmentTable {
  const OptimizerSegment* segments;
  const SegmentPart* parts;
  std::int64_t part_count;
};

class DeviceSegments {
 public:
  static constexpr std::int32_t kPartElements = 4096;

  DeviceSegments(Device& device, const std::vector<OptimizerSegment>& segments,
                 const std::vector<SegmentPart>& parts)
      : segments_(device, segments),
        parts_(device, parts),
        part_count_(static_cast<std::int64_t>(parts.size())) {}
  DeviceSegments(Device& device, const std::vector<OptimizerSegment>& segments)
      : DeviceSegments(device, segments, parts_of(segments, kPartElements)) {}
  SegmentTable table() const { return {segments_.data(), parts_.data(), part_count_}; }

 private:
  DeviceTable<OptimizerSegment> segments_;
  DeviceTable<SegmentPart> parts_;
  std::int64_t part_count_;
};

template <std::size_t kSlabs>
struct SlabPointers {
  float* at[kSlabs];
};

template <int N, std::size_t kSlabs, class Update, std::size_t... kSlab>
__device__ void update_elements(const Update& update, const float* gradient,
                                const SlabPointers<kSlabs>& slabs, std::int64_t at,
                                std::index_sequence<kSlab...>) {
  const Pack<float, N> g = load<float, N>(gradient + at);
  Pack<float, N> packs[kSlabs] = {load<float, N>(slabs.at[kSlab] + at)...};
  for (int j = 0; j < N; ++j) update(g.element[j], packs[kSlab].element[j]...);
  (store<float, N>(slabs.at[kSlab] + at, packs[kSlab]), ...);
}

inline constexpr int kUpdateThreads = 256;

/// `aligned`: all slabs are, to packs.
template <class Step, class Options>
__global__ void __launch_bounds__(kUpdateThreads)
    take_step_kernel(Options options, SegmentTable table, const StepState* state,
                     const float* gradient, SlabPointers<Step::kSlabs> slabs, bool aligned) {
  if (state->skip != 0) return;
  __shared__ Step step;
  if (threadIdx.x == 0) step = Step::of(options, *state);
  __syncthreads();
  constexpr int kN = kPack<float>;
  constexpr std::make_index_sequence<Step::kSlabs> kEach;
  for (std::int64_t i = blockIdx.x; i < table.part_count; i += gridDim.x) {
    const SegmentPart part = table.parts[i];
    const auto update = step.template update<float>(table.segments[part.segment]);
    const std::int32_t packs = aligned && part.begin % kN == 0 ? part.elements / kN : 0;
    const auto thread = static_cast<std::int32_t>(threadIdx.x);
    for (std::int32_t p = thread; p < packs; p += kUpdateThreads)
      update_elements<kN>(update, gradient, slabs, part.begin + p * kN, kEach);
    for (std::int32_t e = packs * kN + thread; e < part.elements; e += kUpdateThreads)
      update_elements<1>(update, gradient, slabs, part.begin + e, kEach);
  }
}

/// Blocks of take_step_kernel that run at once: each works out what all segments share, once.
template <class Step, class Options>
int step_blocks(const Device& device, const SegmentTable& table) {
  int resident = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, take_step_kernel<Step, Options>,
                                                      kUpdateThreads, 0),
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  return static_cast<int>(std::clamp<std::int64_t>(
      table.part_count, 1, std::int64_t{resident} * device.multiprocessors()));
}

/// Enqueues it on input 0 and the outputs of `args`.
template <class Step, class Options>
void take_step(const Options& options, const SegmentTable& table, const KernelArgs& args,
               int blocks) {
  const float* gradient = args.inputs[0].as<float>();
  SlabPointers<Step::kSlabs> slabs;
  auto addresses = reinterpret_cast<std::uintptr_t>(gradient);
  for (std::size_t i = 0; i < Step::kSlabs; ++i) {
    slabs.at[i] = args.outputs[i].as<float>();
    addresses |= reinterpret_cast<std::uintptr_t>(slabs.at[i]);
  }
  const bool aligned = addresses % sizeof(Pack<float>) == 0;
  take_step_kernel<Step, Options><<<blocks, kUpdateThreads, 0, stream_of(args)>>>(
      options, table, args.state, gradient, slabs, aligned);
  check_launch("an optimizer step");
}

template <class Step, class Options>
Kernel update_kernel(const OpSignature& s, const KernelContext& context, const Options& options,
                     const std::vector<OptimizerSegment>& segments) {
  check_slabs(s, Step::kSlabs);
  const DeviceSegments on_device(*context.gpu, segments);
  const int blocks = step_blocks<Step, Options>(*context.gpu, on_device.table());
  return {.run = [options, on_device, blocks](const KernelArgs& args) {
    take_step<Step>(options, on_device.table(), args, blocks);
  }};
}

}  // namespace ddp::cuda
