// Marks: the GPU's own record of how far its compute stream is. One kernel of one thread at each
// border of an activity counts, reads the GPU's clock, and writes both to memory that the host
// reads without any CUDA call, also while the stream hangs.
#pragma once

#include <array>
#include <cstdint>

#include "core/backend/backend.h"
#include "core/tensor/tensor.h"

namespace ddp::cuda {

/// What the kernel keeps on the device and copies to the host.
struct Progress {
  std::uint64_t marks = 0;                            ///< borders passed so far
  std::uint64_t nanoseconds = 0;                      ///< the GPU's clock at the last one
  std::uint64_t activity = 0;                         ///< that it is in
  std::array<std::uint64_t, kActivityCount> spent{};  ///< nanoseconds in each activity
};

class Marks {
 public:
  Marks();
  /// The stream of `stream` (a cudaStream_t) enters `activity`.
  void enter(Activity activity, void* stream);
  /// Up to the last mark that the GPU has passed.
  PhaseTimes times() const;

 private:
  Buffer device_;  ///< Progress
  Buffer host_;    ///< Progress, mapped into the GPU's address space
};

}  // namespace ddp::cuda
