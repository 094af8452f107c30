#include "core/ops/optimizer/segments.h"
#include "core/ops/optimizer/sgd_update.h"

namespace ddp {
namespace {

template <class T>
Kernel sgd(std::int64_t elements, std::vector<OptimizerSegment> segments, const SgdOptions& options,
           int threads) {
  return {
      .run = [elements, segments = std::move(segments), options, threads](const KernelArgs& args) {
        const StepState& state = *args.state;
        if (state.skip != 0) return;
        const T* gradient = args.inputs[0].as<T>();
        T* parameter = args.outputs[0].as<T>();
        T* momentum = args.outputs[1].as<T>();
        for_each_part(threads, elements, segments,
                      [&](const OptimizerSegment& segment, std::int64_t from, std::int64_t to) {
                        const double lr = state.learning_rate * segment.lr_scale;
                        sgd_update(
                            SgdFactors<T>{.scale = static_cast<T>(state.gradient_scale),
                                          .decay = static_cast<T>(segment.weight_decay),
                                          .momentum = static_cast<T>(options.momentum),
                                          .of_gradient = static_cast<T>(options.nesterov ? lr : 0),
                                          .of_momentum = static_cast<T>(
                                              options.nesterov ? lr * options.momentum : lr)},
                            to - from, gradient + from, parameter + from, momentum + from);
                      });
      }};
}

Kernel sgd_factory(const OpSignature& s, const KernelContext& context) {
  check_slabs(s, 2);
  const std::int64_t elements = s.inputs[0].elements();
  std::vector<OptimizerSegment> segments = segments_from(s.attributes, elements);
  const SgdOptions options{.momentum = s.attributes.real("momentum"),
                           .nesterov = s.attributes.integer("nesterov") != 0};
  return s.inputs[0].dtype == DType::kF64
             ? sgd<double>(elements, std::move(segments), options, context.threads)
             : sgd<float>(elements, std::move(segments), options, context.threads);
}
DDP_REGISTER_CPU_KERNEL("sgd", sgd_factory);

}  // namespace
}  // namespace ddp
