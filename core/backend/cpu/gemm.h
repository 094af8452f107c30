// Matrix product by BLAS, for float and double, row-major. Inside parallel_for OpenBLAS computes on
// the calling thread; outside of it on as many threads as the backend has set.
#pragma once

#include <cstdint>
#include <type_traits>

#include <cblas.h>

namespace ddp::cpu {

/// A matrix in memory whose rows are `stride` elements apart, used as it is or transposed.
template <class T>
struct Matrix {
  const T* data;
  std::int64_t stride;
  bool transposed = false;
};

/// c[m,n] = a[m,k] b[k,n] + beta c, where a and b are the matrices after transposition.
template <class T>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<T> a, Matrix<T> b, T beta, T* c,
          std::int64_t c_stride) {
  const auto function = [] {
    if constexpr (std::is_same_v<T, double>)
      return cblas_dgemm;
    else
      return cblas_sgemm;
  }();
  const auto extent = [](std::int64_t value) { return static_cast<blasint>(value); };
  function(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
           b.transposed ? CblasTrans : CblasNoTrans, extent(m), extent(n), extent(k), T{1}, a.data,
           extent(a.stride), b.data, extent(b.stride), beta, c, extent(c_stride));
}

}  // namespace ddp::cpu
