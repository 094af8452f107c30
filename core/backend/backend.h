// Backend: the device one rank computes on. It owns memory, the compute stream and events; kernels
// come from the registry by its kind. Work is ordered by streams and events only, so that the same
// plan runs at once on the CPU, is enqueued on CUDA, and can be captured.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/graph/op_definition.h"
#include "core/tensor/tensor.h"

namespace ddp {

/// A point in a stream's order. Reusable: each `record` (or communicator signal) starts a new
/// generation.
class Event {
 public:
  virtual ~Event() = default;
  /// Marks the event as pending; called by whoever will complete it, before it is handed on.
  virtual void reset() = 0;
  /// Marks it as complete; called by the communicator of the CPU backend.
  virtual void complete() = 0;
  virtual bool done() const = 0;
  /// Blocks the calling host thread until the event is complete.
  virtual void wait() = 0;
};

/// An ordered queue of device work.
class Stream {
 public:
  virtual ~Stream() = default;
  /// `event` completes when all work enqueued so far has.
  virtual void record(Event& event) = 0;
  /// Work enqueued from now on starts after `event`. On the CPU the calling thread waits.
  virtual void wait_for(Event& event) = 0;
  /// Blocks the host until all enqueued work is done.
  virtual void synchronize() = 0;
};

/// What the compute stream does between two marks.
enum class Activity : std::uint8_t { kOther, kForward, kBackward, kExposed, kOptimizer };
inline constexpr std::size_t kActivityCount = 5;

/// Where the time of the compute stream went, in seconds. `exposed` is the time that it waited for
/// collectives.
struct PhaseTimes {
  double forward = 0, backward = 0, exposed = 0, optimizer = 0;
};
PhaseTimes operator+(const PhaseTimes& a, const PhaseTimes& b);
PhaseTimes operator-(const PhaseTimes& later, const PhaseTimes& earlier);
/// From the seconds of each activity.
PhaseTimes phase_times_of(const std::array<double, kActivityCount>& seconds);

class Backend {
 public:
  virtual ~Backend() = default;
  virtual BackendKind kind() const = 0;
  /// "AMD EPYC 9754, 2 threads"; printed at start so that nobody trains on the wrong device by
  /// accident.
  virtual std::string device_name() const = 0;
  virtual KernelContext kernel_context() const = 0;
  /// Device memory, zeroed, aligned to 4096 bytes. Throws MemoryError.
  virtual Buffer allocate(std::size_t bytes) = 0;
  virtual Stream& compute() = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  /// The compute stream enters an activity at this place of its order.
  virtual void enter(Activity activity) = 0;
  /// Sums over all activities that the compute stream has left so far, since the backend was made.
  virtual PhaseTimes phase_times() const = 0;
  /// Copies between host and device in the order of the compute stream.
  virtual void upload(void* device, const void* host, std::size_t bytes) = 0;
  virtual void download(void* host, const void* device, std::size_t bytes) = 0;

  /// Whether work is enqueued and computed later; false where it is done when the call returns.
  virtual bool is_asynchronous() const = 0;
  /// Host memory that the device can copy from by itself as long as the result lives. Nothing on
  /// the CPU.
  virtual Buffer pin(std::span<std::byte> memory) = 0;
  /// The stream of copy_ahead.
  virtual Stream& copies() = 0;
  /// Copies pinned host memory to the device in the order of copies(). The host memory must not
  /// change before that.
  virtual void copy_ahead(void* device, const void* host, std::size_t bytes) = 0;
  /// Copies within the device, in the order of the compute stream.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  /// Device memory that this process has taken since the backend was made, as the driver counts it:
  /// libraries and communication included. Nothing where nobody counts.
  virtual std::optional<std::size_t> reserved_bytes() const = 0;
  /// Versions and settings of the libraries it computes with; part of kernel_hash and
  /// environment.json.
  virtual std::string library_versions() const = 0;
};

/// OpenMP + BLAS backend. `threads` is how many this rank may use.
std::unique_ptr<Backend> make_cpu_backend(int threads);

}  // namespace ddp
