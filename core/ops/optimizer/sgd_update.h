// One element's step of SGD with momentum, which sgd and lars share. Used by the CPU kernels of
// this room.
#pragma once

#include <cstdint>

namespace ddp {

/// What all elements of a segment share: d = scale · g + decay · p, m = momentum · m + d,
/// p -= of_gradient · d + of_momentum · m.
template <class T>
struct SgdFactors {
  T scale, decay, momentum, of_gradient, of_momentum;
};

// Factors come by value: in registers, they cannot be suspected to change with each store.
template <class T>
void sgd_update(const SgdFactors<T> f, std::int64_t n, const T* __restrict gradient,
                T* __restrict parameter, T* __restrict momentum) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T d = gradient[i] * f.scale + f.decay * parameter[i];
    momentum[i] = f.momentum * momentum[i] + d;
    parameter[i] -= f.of_gradient * d + f.of_momentum * momentum[i];
  }
}

}  // namespace ddp
