// Element types of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ddp {

enum class DType : std::uint8_t { kF32, kF64, kBF16, kU8, kI32, kI64 };

constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kI64: return 8;
    case DType::kF32:
    case DType::kI32: return 4;
    case DType::kBF16: return 2;
    case DType::kU8: return 1;
  }
  return 0;
}

/// The type that keeps what must not lose digits from step to step (parameters, gradients,
/// optimizer states, running statistics) when activations are `compute`: F32 for BF16, otherwise
/// the same.
constexpr DType master_dtype(DType compute) {
  return compute == DType::kBF16 ? DType::kF32 : compute;
}

/// The name in safetensors files and in printed plans: "F32", "F64", "BF16", "U8", "I32", "I64".
constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::kF32: return "F32";
    case DType::kF64: return "F64";
    case DType::kBF16: return "BF16";
    case DType::kU8: return "U8";
    case DType::kI32: return "I32";
    case DType::kI64: return "I64";
  }
  return "?";
}

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kF32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kF64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::kU8;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::kI32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::kI64;
};
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace ddp
