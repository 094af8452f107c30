// World: the small host-side agreements of a job (start-up checks, evaluation counts, failures).
// Blocking, called by one thread of every rank in the same order, never inside a training step.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace ddp {

inline constexpr int kAllRanks = -1;

/// What one rank tells the others before it leaves.
struct Failure {
  int rank = 0;
  ExitCode code = ExitCode::kInternal;
  std::string sentence;
};

class World {
 public:
  virtual ~World() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Number of ranks on this host and this rank's position among them.
  virtual int local_rank() const = 0;
  virtual int local_size() const = 0;
  virtual std::string host_name() const = 0;

  /// Sums element-wise over ranks, in place; exact.
  virtual void sum(std::span<std::int64_t> values) = 0;
  /// Everybody's bytes, by rank, on every rank.
  virtual std::vector<std::string> gather(std::string_view mine) = 0;
  /// Rank `root`'s bytes on every rank.
  virtual std::string broadcast(std::string_view mine, int root) = 0;
  virtual void barrier() = 0;

  /// Tells all other ranks that this one fails; does not wait for them. A rank that waits in a
  /// collective then gets PeerFailed from Communicator::check() or from its World call.
  virtual void announce(const Failure& failure) = 0;
  /// The failure another rank has announced, if one has arrived.
  virtual std::optional<Failure> announced() const = 0;

  /// Tells rank 0 that this rank has come to its next milestone (rank 0 tells all others); does not
  /// wait. For places where a rank may stay away: nothing else here says which one.
  virtual void arrive() = 0;
  /// The ranks that have not come to the milestone `ahead` after the last one of this rank,
  /// ascending, as far as this rank hears: rank 0 of all, every other rank of rank 0 only.
  virtual std::vector<int> missing(int ahead = 0) = 0;
};

/// Another rank announced a failure; this rank leaves with the same code.
class PeerFailed : public Error {
 public:
  explicit PeerFailed(Failure failure)
      : Error(failure.code, fmt::format("rank {} failed: {}", failure.rank, failure.sentence)),
        failure_(std::move(failure)) {}
  const Failure& failure() const { return failure_; }

 private:
  Failure failure_;
};

/// A failure that every rank knows of at the same place: the job can end in order. `failure().rank`
/// is kAllRanks when it is the same everywhere.
class AgreedFailure : public Error {
 public:
  explicit AgreedFailure(Failure failure)
      : Error(failure.code, failure.sentence), failure_(std::move(failure)) {}
  const Failure& failure() const { return failure_; }

 private:
  Failure failure_;
};

/// Runs `section` on this rank and agrees on the outcome: if it throws anywhere, every rank throws
/// AgreedFailure with the error of the lowest rank that failed. For sections without collectives
/// inside.
void agree(World& world, const std::function<void()>& section);

}  // namespace ddp
