// Three passes: sums of squares of each part of a segment, of each segment from its parts, then the
// step with the rate that follows from them.
#include "core/ops/optimizer/lars_update.h"
#include "core/ops/optimizer/options.h"
#include "core/ops/optimizer/sum_of_squares.cuh"
#include "core/ops/optimizer/update_cuda.cuh"

namespace ddp {
namespace {

__global__ void __launch_bounds__(cuda::kNormThreads)
    part_squares_kernel(cuda::SegmentTable table, const StepState* state, const float* parameter,
                        const float* gradient, SquareSums* squares) {
  if (state->skip != 0) return;
  const SegmentPart part = table.parts[blockIdx.x];
  if (!table.segments[part.segment].adapt) return;
  const double of_parameter = cuda::block_sum_of_squares(parameter + part.begin, part.elements);
  const double of_gradient = cuda::block_sum_of_squares(gradient + part.begin, part.elements);
  if (threadIdx.x == 0) squares[blockIdx.x] = {of_parameter, of_gradient};
}

/// Block s adds up the parts [first_part[s], first_part[s + 1]) of segment s.
__global__ void __launch_bounds__(cuda::kNormThreads)
    segment_squares_kernel(cuda::SegmentTable table, const std::int64_t* first_part,
                           const StepState* state, const SquareSums* of_parts,
                           SquareSums* of_segments) {
  if (state->skip != 0 || !table.segments[blockIdx.x].adapt) return;
  double parameter = 0, gradient = 0;
  for (std::int64_t i = first_part[blockIdx.x] + threadIdx.x; i < first_part[blockIdx.x + 1];
       i += cuda::kNormThreads) {
    parameter += of_parts[i].parameter;
    gradient += of_parts[i].gradient;
  }
  parameter = cuda::block_sum(parameter);
  gradient = cuda::block_sum(gradient);
  if (threadIdx.x == 0) of_segments[blockIdx.x] = {parameter, gradient};
}

/// Of each segment the number of parts before it, and last the number of all parts.
std::vector<std::int64_t> first_parts(const std::vector<SegmentPart>& parts, std::size_t segments) {
  std::vector<std::int64_t> first(segments + 1, 0);
  for (const SegmentPart& part : parts) ++first[static_cast<std::size_t>(part.segment) + 1];
  for (std::size_t s = 0; s < segments; ++s) first[s + 1] += first[s];
  return first;
}

struct Lars {
  LarsOptions options;
  cuda::DeviceSegments segments;
  cuda::DeviceTable<std::int64_t> first_part;
  unsigned segment_count, part_count;
  int blocks;

  void operator()(const KernelArgs& args) const {
    if (part_count == 0) return;
    const cudaStream_t stream = cuda::stream_of(args);
    const cuda::SegmentTable table = segments.table();
    auto* of_parts = reinterpret_cast<SquareSums*>(args.workspace.data());
    SquareSums* of_segments = of_parts + part_count;
    part_squares_kernel<<<part_count, cuda::kNormThreads, 0, stream>>>(
        table, args.state, args.outputs[0].as<float>(), args.inputs[0].as<float>(), of_parts);
    cuda::check_launch("lars");
    segment_squares_kernel<<<segment_count, cuda::kNormThreads, 0, stream>>>(
        table, first_part.data(), args.state, of_parts, of_segments);
    cuda::check_launch("lars");
    cuda::take_step<LarsStep>(LarsInputs{options, table.segments, of_segments}, table, args,
                              blocks);
  }
};

Kernel lars_factory(const OpSignature& s, const KernelContext& context) {
  check_slabs(s, LarsStep::kSlabs);
  const std::vector<OptimizerSegment> segments =
      segments_from(s.attributes, s.inputs[0].elements());
  const std::vector<SegmentPart> parts = parts_of(segments, cuda::DeviceSegments::kPartElements);
  const cuda::DeviceSegments on_device(*context.gpu, segments, parts);
  return {.run = Lars{.options = lars_options(s.attributes),
                      .segments = on_device,
                      .first_part = {*context.gpu, first_parts(parts, segments.size())},
                      .segment_count = static_cast<unsigned>(segments.size()),
                      .part_count = static_cast<unsigned>(parts.size()),
                      .blocks =
                          cuda::step_blocks<LarsStep, LarsInputs>(*context.gpu, on_device.table())},
          .workspace_bytes = (parts.size() + segments.size()) * sizeof(SquareSums)};
}
DDP_REGISTER_CUDA_KERNEL("lars", lars_factory);

}  // namespace
}  // namespace ddp
