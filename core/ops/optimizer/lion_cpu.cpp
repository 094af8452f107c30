#include "core/ops/optimizer/segments.h"

namespace ddp {
namespace {

/// What all elements of a segment share; `keep` is 1 - lr · decay.
template <class T>
struct LionFactors {
  T scale, beta1, rest1, beta2, rest2, keep, step;
};

// Factors come by value: in registers, they cannot be suspected to change with each store.
template <class T>
void update(const LionFactors<T> f, std::int64_t n, const T* __restrict gradient,
            T* __restrict parameter, T* __restrict momentum) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = gradient[i] * f.scale;
    const T direction = f.beta1 * momentum[i] + f.rest1 * g;
    const T sign = static_cast<T>(direction > 0) - static_cast<T>(direction < 0);
    parameter[i] = f.keep * parameter[i] - f.step * sign;
    momentum[i] = f.beta2 * momentum[i] + f.rest2 * g;
  }
}

template <class T>
Kernel lion(std::int64_t elements, std::vector<OptimizerSegment> segments,
            const LionOptions& options, int threads) {
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
                        update(LionFactors<T>{.scale = static_cast<T>(state.gradient_scale),
                                              .beta1 = static_cast<T>(options.beta1),
                                              .rest1 = static_cast<T>(1 - options.beta1),
                                              .beta2 = static_cast<T>(options.beta2),
                                              .rest2 = static_cast<T>(1 - options.beta2),
                                              .keep = static_cast<T>(1 - lr * segment.weight_decay),
                                              .step = static_cast<T>(lr)},
                               to - from, gradient + from, parameter + from, momentum + from);
                      });
      }};
}

Kernel lion_factory(const OpSignature& s, const KernelContext& context) {
  check_slabs(s, 2);
  const std::int64_t elements = s.inputs[0].elements();
  std::vector<OptimizerSegment> segments = segments_from(s.attributes, elements);
  const LionOptions options{.beta1 = s.attributes.real("beta1"),
                            .beta2 = s.attributes.real("beta2")};
  return s.inputs[0].dtype == DType::kF64
             ? lion<double>(elements, std::move(segments), options, context.threads)
             : lion<float>(elements, std::move(segments), options, context.threads);
}
DDP_REGISTER_CPU_KERNEL("lion", lion_factory);

}  // namespace
}  // namespace ddp
