// Counts what the calling thread allocates with operator new, which allocations.cpp replaces for
// this test program.
#pragma once

#include <cstddef>

namespace ddp {

struct Allocations {
  std::size_t calls = 0;
  std::size_t largest = 0;  ///< bytes of the largest single allocation
};

/// Since the previous call on this thread.
Allocations take_allocations();

}  // namespace ddp
