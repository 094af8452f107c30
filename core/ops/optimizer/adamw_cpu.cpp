#include <cmath>

#include "core/ops/optimizer/segments.h"

namespace ddp {
namespace {

/// What all elements of a segment share; `keep` is 1 - lr · decay, `step` is lr over the bias
/// correction of the first moment, `root` one over the root of that of the second.
template <class T>
struct AdamFactors {
  T scale, beta1, rest1, beta2, rest2, eps, keep, step, root;
};

// Factors come by value: in registers, they cannot be suspected to change with each store.
template <class T>
void update(const AdamFactors<T> f, std::int64_t n, const T* __restrict gradient,
            T* __restrict parameter, T* __restrict first, T* __restrict second) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = gradient[i] * f.scale;
    first[i] = f.beta1 * first[i] + f.rest1 * g;
    second[i] = f.beta2 * second[i] + f.rest2 * g * g;
    parameter[i] =
        f.keep * parameter[i] - f.step * first[i] / (std::sqrt(second[i]) * f.root + f.eps);
  }
}

template <class T>
Kernel adamw(std::int64_t elements, std::vector<OptimizerSegment> segments,
             const AdamWOptions& options, int threads) {
  return {
      .run = [elements, segments = std::move(segments), options, threads](const KernelArgs& args) {
        const StepState& state = *args.state;
        if (state.skip != 0) return;
        const double t = static_cast<double>(state.update);
        const double correction = 1 - std::pow(options.beta1, t);
        const AdamFactors<T> factors{
            .scale = static_cast<T>(state.gradient_scale),
            .beta1 = static_cast<T>(options.beta1),
            .rest1 = static_cast<T>(1 - options.beta1),
            .beta2 = static_cast<T>(options.beta2),
            .rest2 = static_cast<T>(1 - options.beta2),
            .eps = static_cast<T>(options.eps),
            .keep = 1,
            .step = 0,
            .root = static_cast<T>(1 / std::sqrt(1 - std::pow(options.beta2, t)))};
        const T* gradient = args.inputs[0].as<T>();
        T* parameter = args.outputs[0].as<T>();
        T* first = args.outputs[1].as<T>();
        T* second = args.outputs[2].as<T>();
        for_each_part(threads, elements, segments,
                      [&](const OptimizerSegment& segment, std::int64_t from, std::int64_t to) {
                        AdamFactors<T> f = factors;
                        const double lr = state.learning_rate * segment.lr_scale;
                        f.keep = static_cast<T>(1 - lr * segment.weight_decay);
                        f.step = static_cast<T>(lr / correction);
                        update(f, to - from, gradient + from, parameter + from, first + from,
                               second + from);
                      });
      }};
}

Kernel adamw_factory(const OpSignature& s, const KernelContext& context) {
  check_slabs(s, 3);
  const std::int64_t elements = s.inputs[0].elements();
  std::vector<OptimizerSegment> segments = segments_from(s.attributes, elements);
  const AdamWOptions options{.beta1 = s.attributes.real("beta1"),
                             .beta2 = s.attributes.real("beta2"),
                             .eps = s.attributes.real("eps")};
  return s.inputs[0].dtype == DType::kF64
             ? adamw<double>(elements, std::move(segments), options, context.threads)
             : adamw<float>(elements, std::move(segments), options, context.threads);
}
DDP_REGISTER_CPU_KERNEL("adamw", adamw_factory);

}  // namespace
}  // namespace ddp
