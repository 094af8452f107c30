#include <algorithm>

#include "core/backend/cuda/kernel.cuh"
#include "core/ops/batchnorm/batchnorm.h"
#include "core/backend/cuda/device_table.h"

namespace ddp {
namespace {

constexpr int kThreads = 256;

struct Segment {
  std::int64_t offset, elements;  ///< means and variances; the count follows them
  double momentum;
};

/// x of the grid are segments.
__global__ void average_kernel(const Segment* segments, const float* sums, float* averages,
                               const StepState* state) {
  if (state->skip != 0) return;
  const Segment segment = segments[blockIdx.x];
  const double count = sums[segment.offset + segment.elements];
  if (count == 0) return;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.y) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.y) * kThreads + threadIdx.x;
       i < segment.elements; i += stride) {
    float& average = averages[segment.offset + i];
    average = static_cast<float>((1 - segment.momentum) * average +
                                 segment.momentum * (sums[segment.offset + i] / count));
  }
}

Kernel running_average_factory(const OpSignature& s, const KernelContext& context) {
  constexpr std::int64_t kMostBlocks = 64;  // of a segment
  const std::vector<double>& flat = s.attributes.list("segments");
  std::vector<Segment> segments;
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < flat.size(); i += 3) {
    segments.push_back({.offset = static_cast<std::int64_t>(flat[i]),
                        .elements = 2 * static_cast<std::int64_t>(flat[i + 1]),
                        .momentum = flat[i + 2]});
    longest = std::max(longest, segments.back().elements);
  }
  if (longest == 0) return {.run = [](const KernelArgs&) {}};
  const dim3 grid(
      static_cast<unsigned>(segments.size()),
      static_cast<unsigned>(std::min((longest + kThreads - 1) / kThreads, kMostBlocks)));
  return {.run = [grid, table = cuda::DeviceTable<Segment>(*context.gpu, segments)](
                     const KernelArgs& args) {
    average_kernel<<<grid, kThreads, 0, cuda::stream_of(args)>>>(
        table.data(), args.inputs[0].as<float>(), args.outputs[0].as<float>(), args.state);
    cuda::check_launch("running_average");
  }};
}
DDP_REGISTER_CUDA_KERNEL("running_average", running_average_factory);

}  // namespace
}  // namespace ddp
