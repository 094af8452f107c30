#include "core/backend/cuda/trial.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ddp::cuda {
namespace {

constexpr std::size_t kTimedRuns = 5;
constexpr std::size_t kFlushBytes = std::size_t{256} << 20;  // several times any L2 cache
constexpr int kOrdinaryByte = 0x3C;  // as F32 and as BF16 a small positive number
constexpr int kNanByte = 0xFF;

EventHandle timing_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "cudaEventCreate");
  return EventHandle(event);
}

}  // namespace

Trial::Trial(Device& device, std::span<const std::size_t> operand_bytes)
    : stream_(device.compute().handle()),
      cold_(allocate(kFlushBytes)),
      start_(timing_event()),
      stop_(timing_event()) {
  DDP_CHECK(operand_bytes.size() <= kMaxOperands, "an op on trial has {} operands",
            operand_bytes.size());
  for (const std::size_t bytes : operand_bytes) {
    operands_.push_back(allocate(bytes));
    pointers_[operands_.size() - 1] = operands_.back().data();
    fill(operands_.back(), kOrdinaryByte);
  }
}

float Trial::milliseconds(const Candidate& candidate, float best) {
  run(candidate);  // loads its code
  std::array<float, kTimedRuns> times{};
  for (float& time : times) {
    time = timed_run(candidate);
    if (times[0] > 2 * best) return times[0];
  }
  const auto median = times.begin() + kTimedRuns / 2;
  std::nth_element(times.begin(), median, times.end());
  return *median;
}

bool Trial::passes_nan(const Candidate& candidate, std::int64_t element, DType dtype) {
  fill(operands_.front(), kNanByte);
  run(candidate);
  const std::size_t size = size_of(dtype);
  std::uint32_t bits = 0;
  check(cudaMemcpyAsync(&bits, operands_.back().data() + static_cast<std::size_t>(element) * size,
                        size, cudaMemcpyDeviceToHost, stream_),
        "a copy from the GPU");
  fill(operands_.front(), kOrdinaryByte);
  check(cudaStreamSynchronize(stream_), "a trial of kernels");
  return std::isnan(std::bit_cast<float>(dtype == DType::kBF16 ? bits << 16 : bits));
}

Buffer Trial::allocate(std::size_t bytes) const {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), fmt::format("{} bytes to choose kernels", bytes));
  return {memory, bytes, [](void* p) { cudaFree(p); }};
}

void Trial::fill(const Buffer& buffer, int byte) const {
  check(cudaMemsetAsync(buffer.data(), byte, buffer.size(), stream_), "cudaMemset");
}

void Trial::run(const Candidate& candidate) {
  if (candidate.workspace_bytes > workspace_.size())
    workspace_ = allocate(candidate.workspace_bytes);
  candidate.enqueue(pointers_.data(), workspace_.data());
}

/// Operands come from memory, as in a training step; and while the cache is flushed the host gets
/// ahead of the GPU, so that its own time is not measured.
float Trial::timed_run(const Candidate& candidate) {
  fill(cold_, 0);
  check(cudaEventRecord(start_.get(), stream_), "cudaEventRecord");
  run(candidate);
  check(cudaEventRecord(stop_.get(), stream_), "cudaEventRecord");
  check(cudaEventSynchronize(stop_.get()), "a trial of kernels");
  float time = 0;
  check(cudaEventElapsedTime(&time, start_.get(), stop_.get()), "cudaEventElapsedTime");
  return time;
}

}  // namespace ddp::cuda
