#include "comm/nccl/connection.h"

#include <chrono>
#include <exception>
#include <thread>

#include "comm/polling.h"

namespace ddp::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kEndLimit{4};    ///< all ranks end alike; the slowest sets the time
constexpr std::chrono::seconds kAbortLimit{1};  ///< 0.5 s where nothing hinders it
constexpr std::chrono::seconds kIdleLimit{2};

int greatest_priority() {
  int least = 0, greatest = 0;
  cuda::check(cudaDeviceGetStreamPriorityRange(&least, &greatest),
              "cudaDeviceGetStreamPriorityRange");
  return greatest;
}

/// Whether `done()` became true within the limit.
template <class Done>
bool wait_for(const Done& done, std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  while (!done()) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kLongestSleep);
  }
  return true;
}

}  // namespace

bool has_windows() {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
  return nccl_version() >= NCCL_VERSION(2, 27, 0);
#else
  return false;
#endif
}

NcclConnection::NcclConnection(int device) : device_(device), stream_(greatest_priority()) {}

void NcclConnection::connect(int rank, int size, const ncclUniqueId& id) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  begun(ncclCommInitRankConfig(&handle_, size, id, rank, &config), "ncclCommInitRankConfig");
}

void NcclConnection::begun(ncclResult_t status, std::string_view call) const {
  if (status != ncclInProgress) check_nccl(status, call, handle_);
}

bool NcclConnection::settled(std::string_view call) const {
  ncclResult_t status = ncclSuccess;
  check_nccl(ncclCommGetAsyncError(handle_, &status), "ncclCommGetAsyncError", handle_);
  if (status == ncclInProgress) return false;
  check_nccl(status, call, handle_);
  return true;
}

NcclConnection::Memory NcclConnection::allocate(std::size_t bytes) {
  Memory memory;
  if (ncclMemAlloc(&memory.data, bytes) == ncclSuccess) {
    memory.of_nccl = true;
    return memory;
  }
  cudaGetLastError();
  cuda::check(cudaMalloc(&memory.data, bytes), fmt::format("{} bytes", bytes));
  return memory;
}

void NcclConnection::free(Memory memory) noexcept {
  // Freeing waits for the whole GPU, thus for a collective that may never end.
  if (aborted_ || !idle()) return;
  deregister_windows(memory.data);
  if (memory.of_nccl) {
    cudaDeviceSynchronize();  // unlike cudaFree, the next call does not wait for kernels
    ncclMemFree(memory.data);
  } else {
    cudaFree(memory.data);
  }
}

void NcclConnection::register_window([[maybe_unused]] void* data,
                                     [[maybe_unused]] std::size_t bytes) {
  DDP_CHECK(has_windows(), "this NCCL has no windows");
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
  Window* window = nullptr;
  {
    const std::lock_guard lock(mutex_);
    window = &windows_.emplace_back(Window{.data = data});
  }
  begun(ncclCommWindowRegister(handle_, data, bytes, &window->handle, NCCL_WIN_COLL_SYMMETRIC),
        "ncclCommWindowRegister");
#endif
}

void NcclConnection::close() noexcept { end(/*in_order=*/true); }

void NcclConnection::abort() noexcept {
  aborted_ = true;
  end(/*in_order=*/false);
}

void NcclConnection::end(bool in_order) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(ending_, true) || handle_ == nullptr) return;
  }
  try {
    std::packaged_task<void()> task([self = shared_from_this(), in_order] {
      cudaSetDevice(self->device_);
      if (in_order && self->finalize()) return;
      self->aborted_ = true;
      ncclCommAbort(self->handle_);
    });
    const std::future<void> ended = task.get_future();
    std::thread(std::move(task)).detach();
    ended.wait_for(in_order ? kEndLimit + kAbortLimit : kAbortLimit);
  } catch (const std::exception&) {
    aborted_ = true;  // no thread to be had: NCCL is left as it is
  }
}

bool NcclConnection::finalize() noexcept {
  const auto deadline = Clock::now() + kEndLimit;
  if (!idle()) return false;
  deregister_windows();
  ncclResult_t status = ncclCommFinalize(handle_);
  const auto done = [&] {
    return status != ncclInProgress ||
           (ncclCommGetAsyncError(handle_, &status) == ncclSuccess && status != ncclInProgress);
  };
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  if (!wait_for(done, left) || status != ncclSuccess) return false;
  ncclCommDestroy(handle_);
  return true;
}

bool NcclConnection::idle() noexcept {
  const auto done = [&] { return cudaStreamQuery(stream_.handle()) != cudaErrorNotReady; };
  // On the way out of an error nothing is waited for: the others may never come.
  return std::uncaught_exceptions() > 0 ? done() : wait_for(done, kIdleLimit);
}

void NcclConnection::deregister_windows([[maybe_unused]] const void* data) noexcept {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
  const std::lock_guard lock(mutex_);
  windows_.remove_if([&](const Window& window) {
    if (data != nullptr && window.data != data) return false;
    ncclCommWindowDeregister(handle_, window.handle);
    return true;
  });
#endif
}

}  // namespace ddp::comm
