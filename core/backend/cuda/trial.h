// Trial: runs candidates for one op of a library on memory of its own while a plan is built, to
// time them and to see how they treat NaN.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "core/backend/cuda/device.h"

namespace ddp::cuda {

class Trial {
 public:
  static constexpr std::size_t kMaxOperands = 4;
  struct Candidate {
    /// Enqueues it on the compute stream of the device.
    std::function<void(void** operands, void* workspace)> enqueue;
    std::size_t workspace_bytes = 0;
  };

  /// Sizes of the inputs and, last, of the output. Throws MemoryError when the device cannot hold
  /// them.
  Trial(Device& device, std::span<const std::size_t> operand_bytes);

  /// Median time of a few runs; of one run only when that takes more than twice `best`.
  float milliseconds(const Candidate& candidate, float best);
  /// Whether element `element` of the output, of `dtype` F32 or BF16, is NaN when all of the first
  /// input is.
  bool passes_nan(const Candidate& candidate, std::int64_t element, DType dtype);

 private:
  Buffer allocate(std::size_t bytes) const;
  void fill(const Buffer& buffer, int byte) const;
  void run(const Candidate& candidate);
  float timed_run(const Candidate& candidate);

  cudaStream_t stream_;
  Buffer cold_, workspace_;
  std::vector<Buffer> operands_;
  std::array<void*, kMaxOperands> pointers_{};
  EventHandle start_, stop_;
};

}  // namespace ddp::cuda
