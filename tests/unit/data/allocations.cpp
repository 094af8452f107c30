#include "tests/unit/data/allocations.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

namespace {
thread_local ddp::Allocations counted;
}  // namespace

namespace ddp {
Allocations take_allocations() { return std::exchange(counted, {}); }
}  // namespace ddp

void* operator new(std::size_t bytes) {
  ++counted.calls;
  counted.largest = std::max(counted.largest, bytes);
  if (void* memory = std::malloc(std::max<std::size_t>(bytes, 1))) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
