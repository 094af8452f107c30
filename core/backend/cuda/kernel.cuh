// What the CUDA kernels of all rooms share: element types, loads of 16 bytes, reductions in a fixed
// order, and the choice of a kernel by dtype. Kernels compute in float whatever the element type
// is. Included by .cu files only.
#pragma once

#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>

#include "core/backend/cuda/device.h"

namespace ddp {

template <>
struct DTypeOf<__nv_bfloat16> {
  static constexpr DType value = DType::kBF16;
};

namespace cuda {

inline constexpr int kWarp = 32;

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
template <class T>
__device__ inline T from_float(float x) {
  if constexpr (std::is_same_v<T, float>)
    return x;
  else
    return __float2bfloat16_rn(x);
}

/// As many elements as one load of 16 bytes brings.
template <class T>
inline constexpr int kPack = 16 / static_cast<int>(sizeof(T));
template <class T, int N = kPack<T>>
struct alignas(sizeof(T) * N) Pack {
  T element[N];
};
/// `at` must be aligned to the pack.
template <class T, int N = kPack<T>>
__device__ inline Pack<T, N> load(const T* at) {
  return *reinterpret_cast<const Pack<T, N>*>(at);
}
template <class T, int N = kPack<T>>
__device__ inline void store(T* at, const Pack<T, N>& pack) {
  *reinterpret_cast<Pack<T, N>*>(at) = pack;
}

/// Sum over the threads of a warp, on every thread, in a fixed order.
template <class S>
__device__ inline S warp_sum(S value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xFFFFFFFFU, value, offset);
  return value;
}
__device__ inline float warp_max(float value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFU, value, offset));
  return value;
}

/// Sum over the threads of a block of at most 1024 threads (a multiple of 32), on every thread, in
/// a fixed order. Every thread must call it.
template <class S>
__device__ inline S block_sum(S value) {
  __shared__ S partial[kWarp];
  const int lane = static_cast<int>(threadIdx.x) % kWarp,
            warp = static_cast<int>(threadIdx.x) / kWarp;
  value = warp_sum(value);
  __syncthreads();  // of an earlier call, all have read the sum
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  return warp_sum(lane < warps ? partial[lane] : S{0});
}

/// Calls f(T{}) with the element type of `dtype`: float or __nv_bfloat16. Others do not exist on
/// the GPU: InternalError.
template <class F>
auto with_type(DType dtype, const F& f) {
  DDP_CHECK(dtype == DType::kF32 || dtype == DType::kBF16, "there is no CUDA kernel for {}",
            name_of(dtype));
  if (dtype == DType::kBF16) return f(__nv_bfloat16{});
  return f(float{});
}

/// Pointers to the inputs of an element-wise kernel, passed to the GPU by value.
template <class T, int N>
struct Pointers {
  const T* at[N];
};

template <class T, int kInputs, class F>
__global__ void map_kernel(std::int64_t elements, Pointers<T, kInputs> in, T* out, F f) {
  constexpr int kN = kPack<T>;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const auto apply = [&](const auto&... x) { return f(to_float(x)...); };
  const auto value = [&](const Pack<T>(&packs)[kInputs], int j) {
    if constexpr (kInputs == 1)
      return apply(packs[0].element[j]);
    else if constexpr (kInputs == 2)
      return apply(packs[0].element[j], packs[1].element[j]);
    else
      return apply(packs[0].element[j], packs[1].element[j], packs[2].element[j]);
  };
  for (std::int64_t i = first; i < elements / kN; i += stride) {
    Pack<T> packs[kInputs];
    for (int k = 0; k < kInputs; ++k) packs[k] = load(in.at[k] + i * kN);
    Pack<T> y;
    for (int j = 0; j < kN; ++j) y.element[j] = from_float<T>(value(packs, j));
    store(out + i * kN, y);
  }
  for (std::int64_t i = elements / kN * kN + first; i < elements; i += stride) {
    Pack<T> packs[kInputs];
    for (int k = 0; k < kInputs; ++k) packs[k].element[0] = in.at[k][i];
    out[i] = from_float<T>(value(packs, 0));
  }
}

/// The kernel of an op out[i] = f(in_0[i], …) on its first `kInputs` inputs (one to three), all of
/// the type of the output; `f` computes in float. The output may lie over an input. Memory is
/// touched once, in loads of 16 bytes, to which all tensors are aligned.
template <int kInputs, class F>
Kernel elementwise(const OpSignature& s, const KernelContext& context, const char* name, F f = {}) {
  return with_type(s.outputs[0].dtype, [&](auto type) -> Kernel {
    using T = decltype(type);
    constexpr int kThreads = 256;
    const std::int64_t elements = s.outputs[0].elements();
    const int blocks = grid_blocks(*context.gpu, (elements + kPack<T> - 1) / kPack<T>, kThreads);
    return {.run = [=](const KernelArgs& args) {
      Pointers<T, kInputs> in;
      for (int k = 0; k < kInputs; ++k) in.at[k] = args.inputs[static_cast<std::size_t>(k)].as<T>();
      map_kernel<<<blocks, kThreads, 0, stream_of(args)>>>(elements, in, args.outputs[0].as<T>(),
                                                           f);
      check_launch(name);
    }};
  });
}

}  // namespace cuda
}  // namespace ddp
