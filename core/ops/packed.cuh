// A pack of elements as one load brings it. Elements are taken out of their words when they are
// used: until then two BF16 share a register, so that a thread has room for more loads at a time.
// Included by .cu files only.
#pragma once

#include "core/backend/cuda/kernel.cuh"

namespace ddp::cuda {

/// `N` is kPack<T> or 1.
template <class T, int N>
class Packed {
  static constexpr bool kPairs = sizeof(T) == 2;
  static constexpr int kWords = static_cast<int>(N * sizeof(T) / sizeof(std::uint32_t));

 public:
  Packed() = default;
  __device__ explicit Packed(const T* at) : words_(load<std::uint32_t, kWords>(words(at))) {}
  __device__ void store(T* at) const { cuda::store(words(at), words_); }

  /// `j` has to be a constant after unrolling.
  __device__ float operator[](int j) const {
    if constexpr (kPairs) {
      const std::uint32_t word = words_.element[j / 2];
      return __uint_as_float(j % 2 == 0 ? word << 16 : word & 0xFFFF0000U);
    } else {
      return __uint_as_float(words_.element[j]);
    }
  }
  /// Makes element j zero.
  __device__ void clear(int j) {
    if constexpr (kPairs)
      words_.element[j / 2] &= j % 2 == 0 ? 0xFFFF0000U : 0x0000FFFFU;
    else
      words_.element[j] = 0;
  }

 private:
  static_assert(N == kPack<T>);
  __device__ static const std::uint32_t* words(const T* at) {
    return reinterpret_cast<const std::uint32_t*>(at);
  }
  __device__ static std::uint32_t* words(T* at) { return reinterpret_cast<std::uint32_t*>(at); }

  Pack<std::uint32_t, kWords> words_;
};

template <class T>
class Packed<T, 1> {
 public:
  Packed() = default;
  __device__ explicit Packed(const T* at) : element_(*at) {}
  __device__ void store(T* at) const { *at = element_; }
  __device__ float operator[](int) const { return to_float(element_); }
  __device__ void clear(int) { element_ = from_float<T>(0.0F); }

 private:
  T element_;
};

}  // namespace ddp::cuda
