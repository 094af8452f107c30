#include "core/tensor/tensor.h"

#include <cstdlib>
#include <cstring>

#include "core/base/round_up.h"

namespace ddp {

Buffer allocate_host(std::size_t bytes) {
  constexpr std::size_t kAlignment = 4096;
  const std::size_t rounded = round_up(bytes, kAlignment);
  void* memory = std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
  if (memory == nullptr)
    throw MemoryError("host memory for {} bytes could not be allocated; use a smaller batch",
                      bytes);
  std::memset(memory, 0, rounded);
  return {memory, bytes, [](void* p) { std::free(p); }};
}

}  // namespace ddp
