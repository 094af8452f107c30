// Rendezvous: ranks pass the stages of a start together, each within a limit of time. When one does
// not, the others say which one on which host, instead of waiting for it for ever. Used where a
// communicator is made, by one thread of every rank.
#pragma once

#include <chrono>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "core/comm/world.h"

namespace ddp::comm {

class Rendezvous {
 public:
  /// `limit` is that of each stage. `places` says where each rank runs ("gpu-07, NVIDIA H200");
  /// without it sentences name ranks only. `world` must outlive this.
  Rendezvous(World& world, std::chrono::milliseconds limit, std::vector<std::string> places = {})
      : world_(world), limit_(limit), places_(std::move(places)) {
    DDP_CHECK(places_.empty() || std::ssize(places_) == world.size(),
              "{} places are given for {} ranks", places_.size(), world.size());
  }

  /// Collective. Returns when `done()` has become true on this rank and, as far as it hears (see
  /// World::missing), on the others. CommunicationError that names the ranks that are not there
  /// when the limit is over: "the connections of NCCL: after 60 s, rank 3 (gpu-07) is not there";
  /// PeerFailed when a rank announced a failure.
  void reach(std::string_view stage, const std::function<bool()>& done);
  /// Collective. Returns when all ranks have come here.
  void meet(std::string_view stage) {
    reach(stage, [] { return true; });
  }

 private:
  std::string described(const std::vector<int>& ranks) const;

  World& world_;
  std::chrono::milliseconds limit_;
  std::vector<std::string> places_;
};

}  // namespace ddp::comm
