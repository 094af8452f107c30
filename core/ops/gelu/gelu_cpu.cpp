// (1 + tanh u) / 2 is the logistic function of 2u, which needs one exponential and loses no digits
// where tanh is close to -1. The exact form calls std::erf for each element, which no vector does,
// and takes about twenty times as long.
#include <cmath>
#include <numbers>

#include "core/backend/cpu/exp.h"
#include "core/backend/cpu/parallel.h"
#include "core/graph/op_definition.h"

namespace ddp {
namespace {

/// Φ(x) and its derivative.
template <class T>
struct Distribution {
  T value, density;
};

template <class T>
struct ByErf {
  static T value(T x) {
    return T{0.5} * (1 + std::erf(x * static_cast<T>(std::numbers::sqrt2 / 2)));
  }
  static Distribution<T> with_density(T x) {
    constexpr T kScale = static_cast<T>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
    return {value(x), kScale * cpu::exp(T{-0.5} * x * x)};
  }
};

template <class T>
struct ByTanh {
  // 2u = a x + b x³
  static constexpr T a = static_cast<T>(2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
  static constexpr T b = static_cast<T>(0.044715) * a;
  static T value(T x) { return 1 / (1 + cpu::exp(-x * (a + b * x * x))); }
  static Distribution<T> with_density(T x) {
    const T phi = value(x);
    return {phi, phi * (1 - phi) * (a + 3 * b * x * x)};
  }
};

template <class T, template <class> class Form>
Kernel forward(std::int64_t elements, int threads) {
  return {.run = [=](const KernelArgs& args) {
    const T* x = args.inputs[0].as<T>();
    T* y = args.outputs[0].as<T>();
    cpu::parallel_for(threads, elements, [=](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) y[i] = x[i] * Form<T>::value(x[i]);
    });
  }};
}

template <class T, template <class> class Form>
Kernel backward(std::int64_t elements, int threads) {
  return {.run = [=](const KernelArgs& args) {
    const T* dy = args.inputs[0].as<T>();
    const T* x = args.inputs[1].as<T>();
    T* dx = args.outputs[0].as<T>();
    cpu::parallel_for(threads, elements, [=](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) {
        const auto [phi, density] = Form<T>::with_density(x[i]);
        dx[i] = dy[i] * (phi + x[i] * density);
      }
    });
  }};
}

template <template <class> class Form>
Kernel forward_of(const TensorType& x, int threads) {
  return x.dtype == DType::kF64 ? forward<double, Form>(x.elements(), threads)
                                : forward<float, Form>(x.elements(), threads);
}

template <template <class> class Form>
Kernel backward_of(const TensorType& x, int threads) {
  return x.dtype == DType::kF64 ? backward<double, Form>(x.elements(), threads)
                                : backward<float, Form>(x.elements(), threads);
}

Kernel gelu_factory(const OpSignature& s, const KernelContext& context) {
  return s.attributes.text("approximate") == "tanh"
             ? forward_of<ByTanh>(s.inputs[0], context.threads)
             : forward_of<ByErf>(s.inputs[0], context.threads);
}
DDP_REGISTER_CPU_KERNEL("gelu", gelu_factory);

Kernel gelu_backward_factory(const OpSignature& s, const KernelContext& context) {
  return s.attributes.text("approximate") == "tanh"
             ? backward_of<ByTanh>(s.inputs[0], context.threads)
             : backward_of<ByErf>(s.inputs[0], context.threads);
}
DDP_REGISTER_CPU_KERNEL("gelu_backward", gelu_backward_factory);

}  // namespace
}  // namespace ddp
