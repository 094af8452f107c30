// (1 + tanh u) / 2 is the logistic function of 2u, which needs one exponential and loses no digits
// where tanh is close to -1.
#include <cmath>
#include <numbers>

#include "core/backend/cuda/kernel.cuh"

namespace ddp {
namespace {

/// Φ(x) and its derivative.
struct Distribution {
  float value, density;
};

struct ByErf {
  static __device__ float value(float x) {
    return 0.5F * (1.0F + erff(x * (std::numbers::sqrt2_v<float> / 2)));
  }
  static __device__ Distribution with_density(float x) {
    constexpr auto kScale = static_cast<float>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
    return {value(x), kScale * expf(-0.5F * x * x)};
  }
};

struct ByTanh {
  // 2u = a x + b x³
  static constexpr auto kA = static_cast<float>(2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
  static constexpr auto kB = 0.044715F * kA;
  // The short division is wrong by two units in the last place for divisors from 1 to 2^126, and
  // gives 0 beyond.
  static __device__ float value(float x) {
    return __fdividef(1.0F, 1.0F + expf(-x * (kA + kB * x * x)));
  }
  static __device__ Distribution with_density(float x) {
    const float phi = value(x);
    return {phi, phi * (1.0F - phi) * (kA + 3.0F * kB * x * x)};
  }
};

template <class Form>
struct Forward {
  __device__ float operator()(float x) const { return x * Form::value(x); }
};
template <class Form>
struct Backward {
  __device__ float operator()(float dy, float x) const {
    const auto [phi, density] = Form::with_density(x);
    return dy * (phi + x * density);
  }
};

Kernel gelu_factory(const OpSignature& s, const KernelContext& context) {
  return s.attributes.text("approximate") == "tanh"
             ? cuda::elementwise<1, Forward<ByTanh>>(s, context, "gelu")
             : cuda::elementwise<1, Forward<ByErf>>(s, context, "gelu");
}
Kernel gelu_backward_factory(const OpSignature& s, const KernelContext& context) {
  return s.attributes.text("approximate") == "tanh"
             ? cuda::elementwise<2, Backward<ByTanh>>(s, context, "gelu_backward")
             : cuda::elementwise<2, Backward<ByErf>>(s, context, "gelu_backward");
}
DDP_REGISTER_CUDA_KERNEL("gelu", gelu_factory);
DDP_REGISTER_CUDA_KERNEL("gelu_backward", gelu_backward_factory);

}  // namespace
}  // namespace ddp
