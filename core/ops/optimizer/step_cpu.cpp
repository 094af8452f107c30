// begin_step and finish_step: the scalars around the update.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/backend/cpu/parallel.h"
#include "core/ops/optimizer/options.h"
#include "core/ops/optimizer/segments.h"
#include "core/ops/optimizer/step_scalars.h"
#include "core/ops/optimizer/sum_of_squares.h"

namespace ddp {
namespace {

Kernel begin_step_factory(const OpSignature&, const KernelContext&) {
  return {.run = [](const KernelArgs& args) { begin_step(*args.state); }};
}

template <class T>
Kernel finish_step_kernel(std::int64_t elements, const FinishStepOptions& options, int threads) {
  const std::int64_t blocks = norm_blocks(elements);
  return {.run =
              [=](const KernelArgs& args) {
                const T* gradient = args.inputs[0].as<T>();
                auto* partial = reinterpret_cast<double*>(args.workspace.data());
                cpu::parallel_for(threads, blocks, [=](std::int64_t begin, std::int64_t end, int) {
                  for (std::int64_t b = begin; b < end; ++b)
                    partial[b] = sum_of_squares(gradient + b * kNormBlock,
                                                std::min(kNormBlock, elements - b * kNormBlock));
                });
                finish_step(*args.state, std::sqrt(std::accumulate(partial, partial + blocks, 0.0)),
                            options);
              },
          .workspace_bytes = static_cast<std::size_t>(blocks) * sizeof(double)};
}

Kernel finish_step_factory(const OpSignature& s, const KernelContext& context) {
  check_slabs(s, 0);
  const FinishStepOptions options = finish_step_options(s.attributes);
  const std::int64_t elements = s.inputs[0].elements();
  return s.inputs[0].dtype == DType::kF64
             ? finish_step_kernel<double>(elements, options, context.threads)
             : finish_step_kernel<float>(elements, options, context.threads);
}

DDP_REGISTER_CPU_KERNEL("begin_step", begin_step_factory);
DDP_REGISTER_CPU_KERNEL("finish_step", finish_step_factory);

}  // namespace
}  // namespace ddp
