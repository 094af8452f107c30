// Counts what the calling thread takes from the heap. Linking allocations.cpp replaces the C
// allocation functions of a test program; where a sanitizer owns these, operator new alone is
// counted.
#pragma once

#include <cstddef>

namespace ddp::test {

struct Allocations {
  std::size_t calls = 0;
  std::size_t largest = 0;  ///< bytes of the largest single allocation
};

/// Since the previous call on this thread.
Allocations take_allocations();

}  // namespace ddp::test
