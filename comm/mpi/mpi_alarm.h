// MpiAlarm: announces a failure by one small message to every other rank, on a communicator of its
// own. Sending waits for nobody; listening is a probe that any thread may make at any time.
#pragma once

#include <array>
#include <mutex>
#include <optional>
#include <type_traits>
#include <vector>

#include "comm/mpi/mpi_transport.h"

namespace ddp::comm {

class MpiAlarm final : public Alarm {
 public:
  explicit MpiAlarm(MpiSession& session) : group_(session) {}
  /// Sends the first failure only. Gives the session up: the others will not finalise with a failed
  /// rank.
  void announce(const Failure& failure) override;
  std::optional<Failure> announced() override;

 private:
  /// Small enough that MPI sends it without the receiver's help; a longer sentence is cut.
  struct Message {
    int rank = 0;
    int code = 0;
    std::array<char, 2040> sentence{};
  };
  static_assert(std::is_trivially_copyable_v<Message>);

  MpiGroup group_;
  std::mutex mutex_;
  Message sent_;
  std::vector<MPI_Request> sends_;
  std::optional<Failure> heard_;
};

}  // namespace ddp::comm
