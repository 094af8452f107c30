// Buffer owns memory; TensorView says how to read it and owns nothing. Both are what kernels,
// communicators and files pass around. Memory of a Buffer is aligned to 4096 bytes and zeroed.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace ddp {

/// Type of a tensor without its memory.
struct TensorType {
  Shape shape;
  DType dtype = DType::kF32;
  std::int64_t elements() const { return shape.elements(); }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype); }
  bool operator==(const TensorType&) const = default;
};

/// Non-owning, trivially copyable.
struct TensorView {
  void* data = nullptr;
  TensorType type;

  template <class T>
  T* as() const {
    DDP_CHECK(dtype_of<T> == type.dtype, "a tensor of {} is read as {}", name_of(type.dtype),
              name_of(dtype_of<T>));
    return static_cast<T*>(data);
  }
  template <class T>
  std::span<T> span() const {
    return {as<T>(), static_cast<std::size_t>(type.elements())};
  }
  const Shape& shape() const { return type.shape; }
  std::size_t bytes() const { return type.bytes(); }
};

/// Move-only owner of a block of memory; the deleter belongs to whoever allocated it (host or
/// device).
class Buffer {
 public:
  Buffer() = default;
  Buffer(void* data, std::size_t size, std::function<void(void*)> free)
      : memory_(static_cast<std::byte*>(data), std::move(free)), size_(size) {}

  std::byte* data() const { return memory_.get(); }
  std::size_t size() const { return size_; }

 private:
  std::unique_ptr<std::byte, std::function<void(void*)>> memory_{nullptr, [](void*) {}};
  std::size_t size_ = 0;
};

/// Host memory, zeroed. Throws MemoryError (with the size) when there is none.
Buffer allocate_host(std::size_t bytes);

}  // namespace ddp
