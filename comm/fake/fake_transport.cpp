#include "comm/fake/fake_transport.h"

#include <algorithm>
#include <cstring>

namespace ddp::comm {
namespace {

template <class T>
void reduce_into(std::span<std::byte> into, std::span<const std::byte> from, Reduction reduction) {
  auto* a = reinterpret_cast<T*>(into.data());
  const auto* b = reinterpret_cast<const T*>(from.data());
  for (std::size_t i = 0; i < into.size() / sizeof(T); ++i)
    a[i] = reduction == Reduction::kSum ? a[i] + b[i] : std::max(a[i], b[i]);
}

void reduce_into(std::span<std::byte> into, const FakeRequest& from) {
  switch (from.dtype) {
    case DType::kF32: return reduce_into<float>(into, from.data, from.reduction);
    case DType::kF64: return reduce_into<double>(into, from.data, from.reduction);
    case DType::kI64: return reduce_into<std::int64_t>(into, from.data, from.reduction);
    default: DDP_CHECK(false, "the fake transport does not reduce {}", name_of(from.dtype));
  }
}

void copy(std::span<const std::byte> from, std::span<std::byte> to) {
  if (!from.empty() && from.data() != to.data()) std::memcpy(to.data(), from.data(), from.size());
}

void gather(std::span<const FakeRequest> by_rank) {
  for (const FakeRequest& to : by_rank) {
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
      const std::span<const std::byte> block = by_rank[rank].mine;
      copy(block, to.data.subspan(rank * block.size(), block.size()));
    }
  }
}

void perform(std::span<const FakeRequest> by_rank) {
  const FakeRequest& first = by_rank[0];
  if (first.kind == FakeRequest::Kind::kGather) return gather(by_rank);
  std::span<std::byte> result = first.data;
  if (first.kind == FakeRequest::Kind::kBroadcast) {
    result = by_rank[static_cast<std::size_t>(first.root)].data;
  } else {
    for (const FakeRequest& request : by_rank.subspan(1)) reduce_into(result, request);
  }
  for (const FakeRequest& request : by_rank) copy(result, request.data);
}

}  // namespace

FakeBoard::FakeBoard(int ranks) {
  for (Slot& slot : slots_) slot.requests.resize(static_cast<std::size_t>(ranks));
}

void FakeBoard::arrive(int rank, std::uint64_t sequence, const FakeRequest& request) {
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[sequence % slots_.size()];
  slot.requests[static_cast<std::size_t>(rank)] = request;
  if (++slot.arrived < slot.requests.size() || closed_) return;
  for (const FakeRequest& other : slot.requests) {
    DDP_CHECK(other.kind == request.kind && other.data.size() == request.data.size(),
              "ranks started different exchanges");
  }
  perform(slot.requests);
  slot.arrived = 0;
  completed_ = sequence + 1;
}

bool FakeBoard::complete(std::uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  return completed_ > sequence;
}

void FakeBoard::close() noexcept {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

void FakeTransport::start_all_reduce(void* data, std::size_t elements, DType dtype,
                                     Reduction reduction) {
  FakeRequest request;
  request.data = {static_cast<std::byte*>(data), elements * size_of(dtype)};
  request.dtype = dtype;
  request.reduction = reduction;
  board_->arrive(rank_, started_++, request);
}

void FakeTransport::start_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  FakeRequest request;
  request.kind = FakeRequest::Kind::kGather;
  request.data = all;
  request.mine = mine;
  board_->arrive(rank_, started_++, request);
}

void FakeTransport::start_broadcast(std::span<std::byte> data, int root) {
  FakeRequest request;
  request.kind = FakeRequest::Kind::kBroadcast;
  request.data = data;
  request.root = root;
  board_->arrive(rank_, started_++, request);
}

void FakeAlarm::announce(const Failure& failure) {
  const std::lock_guard lock(failures_->mutex);
  failures_->announced.push_back({rank_, failure});
}

std::optional<Failure> FakeAlarm::announced() {
  const std::lock_guard lock(failures_->mutex);
  for (const FakeFailures::Announced& a : failures_->announced) {
    if (a.from != rank_) return a.failure;
  }
  return std::nullopt;
}

void FakeAttendance::arrive() {
  const std::lock_guard lock(milestones_->mutex);
  ++milestones_->of_rank[static_cast<std::size_t>(rank_)];
}

std::vector<int> FakeAttendance::missing(int ahead) {
  const std::lock_guard lock(milestones_->mutex);
  const int milestone = milestones_->of_rank[static_cast<std::size_t>(rank_)] + ahead;
  const std::size_t heard = rank_ == 0 ? milestones_->of_rank.size() : 1;
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < heard; ++rank) {
    if (milestones_->of_rank[rank] < milestone) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

}  // namespace ddp::comm
