// TransportWorld: World over any Transport. Every call ends with PeerFailed as soon as another rank
// has announced a failure, so that no rank waits for one that will not come.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/transport.h"
#include "core/comm/world.h"

namespace ddp::comm {

/// Where a rank runs.
struct Place {
  int local_rank = 0;
  int local_size = 1;
  std::string host_name;
};

class TransportWorld final : public World {
 public:
  TransportWorld(std::unique_ptr<Transport> transport, std::unique_ptr<Alarm> alarm,
                 std::unique_ptr<Attendance> attendance, Place place)
      : transport_(std::move(transport)),
        alarm_(std::move(alarm)),
        attendance_(std::move(attendance)),
        place_(std::move(place)) {}

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }
  int local_rank() const override { return place_.local_rank; }
  int local_size() const override { return place_.local_size; }
  std::string host_name() const override { return place_.host_name; }

  void sum(std::span<std::int64_t> values) override;
  std::vector<std::string> gather(std::string_view mine) override;
  std::string broadcast(std::string_view mine, int root) override;
  void barrier() override;

  void announce(const Failure& failure) override { alarm_->announce(failure); }
  std::optional<Failure> announced() const override { return alarm_->announced(); }
  void arrive() override { attendance_->arrive(); }
  std::vector<int> missing(int ahead) override { return attendance_->missing(ahead); }

 private:
  void run(const std::function<void()>& start);
  void broadcast(std::span<std::byte> data, int root);

  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Alarm> alarm_;
  std::unique_ptr<Attendance> attendance_;
  Place place_;
};

}  // namespace ddp::comm
