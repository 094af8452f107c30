// FakeTransport, FakeAlarm and FakeAttendance: ranks are threads of one process and meet on a
// board. The rank that arrives last does the exchange for all, in rank order, so that sums have the
// same bits in every run.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/transport.h"

namespace ddp::comm {

/// What one rank brings to an exchange.
struct FakeRequest {
  enum class Kind { kAllReduce, kGather, kBroadcast };
  Kind kind = Kind::kAllReduce;
  std::span<std::byte> data;        ///< reduced or broadcast in place, or received
  std::span<const std::byte> mine;  ///< of a gather
  DType dtype = DType::kF32;
  Reduction reduction = Reduction::kSum;
  int root = 0;
};

/// Shared by the transports of all ranks. A rank starts exchange k + 1 only when k is complete, so
/// no two ranks are more than one exchange apart and two slots are enough.
class FakeBoard {
 public:
  explicit FakeBoard(int ranks);
  int size() const { return static_cast<int>(slots_[0].requests.size()); }
  void arrive(int rank, std::uint64_t sequence, const FakeRequest& request);
  bool complete(std::uint64_t sequence);
  /// No memory brought so far is touched again; exchanges in flight never complete.
  void close() noexcept;

 private:
  struct Slot {
    std::vector<FakeRequest> requests;
    std::size_t arrived = 0;
  };
  std::mutex mutex_;
  std::array<Slot, 2> slots_;
  std::uint64_t completed_ = 0;
  bool closed_ = false;
};

class FakeTransport final : public Transport {
 public:
  FakeTransport(std::shared_ptr<FakeBoard> board, int rank)
      : board_(std::move(board)), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return board_->size(); }
  void start_all_reduce(void* data, std::size_t elements, DType dtype,
                        Reduction reduction) override;
  void start_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  void start_broadcast(std::span<std::byte> data, int root) override;
  bool test() override { return board_->complete(started_ - 1); }
  void abandon() noexcept override { board_->close(); }

 private:
  std::shared_ptr<FakeBoard> board_;
  int rank_;
  std::uint64_t started_ = 0;
};

/// Failures announced so far, shared by all ranks.
struct FakeFailures {
  struct Announced {
    int from;
    Failure failure;
  };
  std::mutex mutex;
  std::vector<Announced> announced;
};

class FakeAlarm final : public Alarm {
 public:
  FakeAlarm(std::shared_ptr<FakeFailures> failures, int rank)
      : failures_(std::move(failures)), rank_(rank) {}
  void announce(const Failure& failure) override;
  std::optional<Failure> announced() override;

 private:
  std::shared_ptr<FakeFailures> failures_;
  int rank_;
};

/// How far each rank has come, shared by all ranks.
struct FakeMilestones {
  explicit FakeMilestones(int ranks) : of_rank(static_cast<std::size_t>(ranks)) {}
  std::mutex mutex;
  std::vector<int> of_rank;
};

class FakeAttendance final : public Attendance {
 public:
  FakeAttendance(std::shared_ptr<FakeMilestones> milestones, int rank)
      : milestones_(std::move(milestones)), rank_(rank) {}
  void arrive() override;
  std::vector<int> missing(int ahead) override;

 private:
  std::shared_ptr<FakeMilestones> milestones_;
  int rank_;
};

}  // namespace ddp::comm
