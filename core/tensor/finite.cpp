#include "core/tensor/finite.h"

#include <algorithm>
#include <cmath>

#include "core/tensor/bfloat16.h"

namespace ddp {
namespace {

template <class T>
bool elements_finite(const TensorView& view) {
  return std::ranges::all_of(view.span<T>(),
                             [](T x) { return std::isfinite(static_cast<double>(x)); });
}

}  // namespace

bool all_finite(const TensorView& host) {
  switch (host.type.dtype) {
    case DType::kF32: return elements_finite<float>(host);
    case DType::kF64: return elements_finite<double>(host);
    case DType::kBF16: return elements_finite<BFloat16>(host);
    default: return true;
  }
}

}  // namespace ddp
