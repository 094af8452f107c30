// The kernel of an op that takes the same step on each element of a slab. A step is one of
// *_update.h: step.of(options, state) gives what all segments share, step.update<T>(segment) what
// is called with each gradient and the elements to change.
#pragma once

#include <utility>

#include "core/ops/optimizer/for_each_part_cpu.h"
#include "core/ops/optimizer/segments.h"

namespace ddp {

// The update comes by value: in registers, its factors cannot be suspected to change with each
// store.
template <class Update, class T, class... Slab>
void update_range(const Update update, std::int64_t n, const T* __restrict gradient,
                  Slab* __restrict... slabs) {
  for (std::int64_t i = 0; i < n; ++i) update(gradient[i], slabs[i]...);
}

template <class T, class Step>
void take_step(const Step& step, const std::vector<OptimizerSegment>& segments,
               const KernelArgs& args, int threads) {
  const T* gradient = args.inputs[0].as<T>();
  for_each_part(threads, args.inputs[0].type.elements(), segments,
                [&](const OptimizerSegment& segment, std::int64_t from, std::int64_t to) {
                  [&]<std::size_t... kSlab>(std::index_sequence<kSlab...>) {
                    update_range(step.template update<T>(segment), to - from, gradient + from,
                                 (args.outputs[kSlab].as<T>() + from)...);
                  }
                  (std::make_index_sequence<Step::kSlabs>());
                });
}

template <class Step, class Options>
Kernel update_kernel(const OpSignature& s, const KernelContext& context, const Options& options,
                     std::vector<OptimizerSegment> segments) {
  check_slabs(s, Step::kSlabs);
  return {.run = [options, segments = std::move(segments), dtype = s.inputs[0].dtype,
                  threads = context.threads](const KernelArgs& args) {
    if (args.state->skip != 0) return;
    const Step step = Step::of(options, *args.state);
    if (dtype == DType::kF64)
      take_step<double>(step, segments, args, threads);
    else
      take_step<float>(step, segments, args, threads);
  }};
}

}  // namespace ddp
