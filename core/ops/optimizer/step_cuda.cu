// begin_step and finish_step: the scalars around the update.
#include "core/backend/cuda/kernel.cuh"
#include "core/ops/optimizer/options.h"
#include "core/ops/optimizer/segments.h"
#include "core/ops/optimizer/step_scalars.h"
#include "core/ops/optimizer/sum_of_squares.cuh"
#include "core/ops/optimizer/sum_of_squares.h"

namespace ddp {
namespace {

__global__ void begin_step_kernel(StepState* state) { begin_step(*state); }

Kernel begin_step_factory(const OpSignature&, const KernelContext&) {
  return {.run = [](const KernelArgs& args) {
    begin_step_kernel<<<1, 1, 0, cuda::stream_of(args)>>>(args.state);
    cuda::check_launch("begin_step");
  }};
}

/// Block b sums the squares of norm block b.
__global__ void __launch_bounds__(cuda::kNormThreads)
    partial_squares_kernel(std::int64_t elements, const float* gradient, double* partial) {
  const std::int64_t begin = blockIdx.x * kNormBlock, left = elements - begin;
  const double sum =
      cuda::block_sum_of_squares(gradient + begin, left < kNormBlock ? left : kNormBlock);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(cuda::kNormThreads)
    finish_step_kernel(std::int64_t blocks, const double* partial, FinishStepOptions options,
                       StepState* state) {
  double sum = 0;
  for (std::int64_t b = threadIdx.x; b < blocks; b += cuda::kNormThreads) sum += partial[b];
  sum = cuda::block_sum(sum);
  if (threadIdx.x == 0) finish_step(*state, std::sqrt(sum), options);
}

Kernel finish_step_factory(const OpSignature& s, const KernelContext&) {
  check_slabs(s, 0);
  const std::int64_t elements = s.inputs[0].elements(), blocks = norm_blocks(elements);
  return {
      .run =
          [elements, blocks, options = finish_step_options(s.attributes)](const KernelArgs& args) {
            const cudaStream_t stream = cuda::stream_of(args);
            auto* partial = reinterpret_cast<double*>(args.workspace.data());
            partial_squares_kernel<<<static_cast<unsigned>(blocks), cuda::kNormThreads, 0,
                                     stream>>>(elements, args.inputs[0].as<float>(), partial);
            cuda::check_launch("finish_step");
            finish_step_kernel<<<1, cuda::kNormThreads, 0, stream>>>(blocks, partial, options,
                                                                     args.state);
            cuda::check_launch("finish_step");
          },
      .workspace_bytes = static_cast<std::size_t>(blocks) * sizeof(double)};
}

DDP_REGISTER_CUDA_KERNEL("begin_step", begin_step_factory);
DDP_REGISTER_CUDA_KERNEL("finish_step", finish_step_factory);

}  // namespace
}  // namespace ddp
