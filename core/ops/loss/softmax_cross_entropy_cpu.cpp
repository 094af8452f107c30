#include <algorithm>
#include <cmath>

#include "core/backend/cpu/parallel.h"
#include "core/graph/op_definition.h"

namespace ddp {
namespace {

/// -log softmax of one row of logits. The maximum is kept apart from the logarithm of the sum, so
/// that exp never overflows and large logits do not absorb the sum. A NaN or +infinity among the
/// logits makes every result NaN.
template <class T>
class NegativeLogSoftmax {
 public:
  NegativeLogSoftmax(const T* x, std::int64_t classes)
      : largest_(*std::max_element(x, x + classes)) {
    double sum = 0;
    for (std::int64_t j = 0; j < classes; ++j)
      sum += static_cast<double>(std::exp(x[j] - largest_));
    log_sum_ = static_cast<T>(std::log(sum));
  }
  T operator()(T logit) const { return (largest_ - logit) + log_sum_; }

 private:
  T largest_, log_sum_;
};

template <class T>
T cross_entropy(const T* x, std::int64_t classes, std::int32_t label, double smoothing) {
  const NegativeLogSoftmax<T> negative_log(x, classes);
  const T loss = negative_log(x[label]);
  if (smoothing == 0) return loss;
  double all = 0;
  for (std::int64_t j = 0; j < classes; ++j) all += static_cast<double>(negative_log(x[j]));
  return static_cast<T>((1 - smoothing) * static_cast<double>(loss) +
                        smoothing * all / static_cast<double>(classes));
}

template <class T>
Kernel forward(const Shape& logits, double smoothing, int threads) {
  return {.run = [samples = logits[0], classes = logits[1], smoothing,
                  threads](const KernelArgs& args) {
    const T* x = args.inputs[0].as<T>();
    const std::int32_t* labels = args.inputs[1].as<std::int32_t>();
    const float* weights = args.inputs[2].as<float>();
    T* losses = args.outputs[0].as<T>();
    cpu::parallel_for(threads, samples, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i)
        losses[i] = weights[i] == 0
                        ? T{0}
                        : static_cast<T>(weights[i]) *
                              cross_entropy(x + i * classes, classes, labels[i], smoothing);
    });
  }};
}

template <class T>
Kernel backward(const Shape& logits, double smoothing, int threads) {
  return {.run = [samples = logits[0], classes = logits[1], smoothing,
                  threads](const KernelArgs& args) {
    const T* dloss = args.inputs[0].as<T>();
    const T* logits_data = args.inputs[1].as<T>();
    const std::int32_t* labels = args.inputs[2].as<std::int32_t>();
    const float* weights = args.inputs[3].as<float>();
    T* gradients = args.outputs[0].as<T>();
    const T everywhere = static_cast<T>(smoothing / static_cast<double>(classes));
    cpu::parallel_for(threads, samples, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) {
        const T* x = logits_data + i * classes;
        T* dx = gradients + i * classes;
        if (weights[i] == 0) {
          std::fill_n(dx, classes, T{0});
          continue;
        }
        const T scale = dloss[i] * static_cast<T>(weights[i]);
        const NegativeLogSoftmax<T> negative_log(x, classes);
        for (std::int64_t j = 0; j < classes; ++j)
          dx[j] = scale * (std::exp(-negative_log(x[j])) - everywhere);
        dx[labels[i]] -= scale * static_cast<T>(1 - smoothing);
      }
    });
  }};
}

Kernel loss_factory(const OpSignature& s, const KernelContext& context) {
  const double smoothing = s.attributes.real("label_smoothing");
  const TensorType& logits = s.inputs[0];
  return logits.dtype == DType::kF64 ? forward<double>(logits.shape, smoothing, context.threads)
                                     : forward<float>(logits.shape, smoothing, context.threads);
}

Kernel loss_backward_factory(const OpSignature& s, const KernelContext& context) {
  const double smoothing = s.attributes.real("label_smoothing");
  const TensorType& logits = s.inputs[1];
  return logits.dtype == DType::kF64 ? backward<double>(logits.shape, smoothing, context.threads)
                                     : backward<float>(logits.shape, smoothing, context.threads);
}

DDP_REGISTER_CPU_KERNEL("softmax_cross_entropy", loss_factory);
DDP_REGISTER_CPU_KERNEL("softmax_cross_entropy_backward", loss_backward_factory);

}  // namespace
}  // namespace ddp
