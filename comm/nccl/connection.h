// NcclConnection: NCCL's communicator, the stream its collectives run on, and the memory registered
// with it. It is shared with the buffers of that memory and with the thread that closes it, because
// NCCL's calls may block for ever after a failure: then that thread, and what it works on, is left
// behind.
#pragma once

#include <atomic>
#include <future>
#include <list>
#include <memory>
#include <mutex>

#include "comm/nccl/check.h"
#include "core/backend/cuda/device.h"

namespace ddp::comm {

/// Windows of symmetric memory came with NCCL 2.27: whether these headers and the library that is
/// loaded have them.
bool has_windows();
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
using WindowHandle = ncclWindow_t;
#else
using WindowHandle = void*;
#endif

class NcclConnection : public std::enable_shared_from_this<NcclConnection> {
 public:
  /// On GPU `device`; its stream is served before all others of that GPU.
  explicit NcclConnection(int device);
  NcclConnection(const NcclConnection&) = delete;
  NcclConnection& operator=(const NcclConnection&) = delete;

  cuda::CudaStream& stream() { return stream_; }
  ncclComm_t handle() const { return handle_; }

  /// Begins to connect `size` ranks; settled() says when it is done.
  void connect(int rank, int size, const ncclUniqueId& id);
  /// Takes the status of a call of NCCL, which may go on in the background. CommunicationError if
  /// it failed already.
  void begun(ncclResult_t status, std::string_view call) const;
  /// Whether all calls so far are done; before that there must be no other. CommunicationError,
  /// with `call` in its sentence, if one failed.
  bool settled(std::string_view call) const;

  /// Memory of NCCL, or the GPU's where NCCL has none. Uninitialised. Throws MemoryError.
  struct Memory {
    void* data = nullptr;
    bool of_nccl = false;
  };
  Memory allocate(std::size_t bytes);
  /// Frees it, once the stream is idle; what a collective may still use is left alone.
  void free(Memory memory) noexcept;
  /// Begins to register memory of allocate(), on all ranks; settled() says when it is done. Only
  /// where has_windows().
  void register_window(void* data, std::size_t bytes);

  /// Ends the communicator, waiting for a few seconds at most. In order, or at once after a
  /// failure: then collectives in flight end with whatever they hold.
  void close() noexcept;
  void abort() noexcept;
  bool aborted() const { return aborted_; }

 private:
  void end(bool in_order) noexcept;
  bool finalize() noexcept;
  bool idle() noexcept;
  /// Of `data`, or all.
  void deregister_windows(const void* data = nullptr) noexcept;

  const int device_;
  cuda::CudaStream stream_;
  ncclComm_t handle_ = nullptr;
  std::atomic<bool> aborted_ = false;
  std::mutex mutex_;  ///< of the windows and of ending
  bool ending_ = false;
  struct Window {
    void* data;
    WindowHandle handle = nullptr;  ///< written by NCCL's thread: it keeps its place
  };
  std::list<Window> windows_;
};

}  // namespace ddp::comm
