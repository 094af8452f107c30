#include "comm/ordered_communicator.h"

#include <algorithm>

#include <sys/prctl.h>

#include "comm/signature.h"

namespace ddp::comm {
namespace {

/// More collectives than are ever pending, so that post() does not allocate.
constexpr std::size_t kQueueCapacity = 1024;

bool can_reduce(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kI64;
}

}  // namespace

OrderedCommunicator::OrderedCommunicator(std::unique_ptr<Transport> transport, const World& world,
                                         std::size_t chunk_bytes)
    : transport_(std::move(transport)), world_(world), chunk_bytes_(chunk_bytes) {
  queue_.reserve(kQueueCapacity);
  thread_ = std::thread([this] { serve(); });
}

OrderedCommunicator::~OrderedCommunicator() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void OrderedCommunicator::post(const Collective& collective, TensorView data, Event& after,
                               Event& signal) {
  DDP_CHECK(size() > 1, "\"{}\" is posted in a world of one rank", collective.label);
  DDP_CHECK(collective.kind == CollectiveKind::kBroadcast || can_reduce(data.type.dtype),
            "\"{}\" reduces {}, which this communicator cannot", collective.label,
            name_of(data.type.dtype));
  signal.reset();
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({&collective, data, &after, &signal});
  }
  wake_.notify_one();
}

void OrderedCommunicator::check() const {
  if (failed_.load(std::memory_order_acquire)) std::rethrow_exception(failure_);
}

void OrderedCommunicator::serve() {
  // Linux lets sleeps last 50 us longer by default, which is more than a small exchange takes.
  prctl(PR_SET_TIMERSLACK, 1000UL);
  std::vector<Posted> taken;
  taken.reserve(kQueueCapacity);
  while (true) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      taken.swap(queue_);
    }
    for (const Posted& posted : taken) {
      try {
        if (!failed_) run(posted);
      } catch (...) {
        failure_ = std::current_exception();
        failed_.store(true, std::memory_order_release);
      }
      posted.signal->complete();
    }
    taken.clear();
  }
}

void OrderedCommunicator::run(const Posted& posted) {
  poll_until([&] { return posted.after->done(); }, [this] { interrupt(); });
  compare_signatures(posted);
  exchange(posted);
  ++sequence_;
}

void OrderedCommunicator::compare_signatures(const Posted& posted) {
  const Signature mine = signature_of(sequence_, *posted.collective, posted.data.type);
  Extremes extremes = extremes_of(mine.key);
  run_exchange(
      *transport_,
      [&] {
        transport_->start_all_reduce(extremes.data(), extremes.size(), DType::kI64,
                                     Reduction::kMax);
      },
      [this] { interrupt(); });
  if (all_equal(extremes)) return;

  std::vector<Signature> by_rank(static_cast<std::size_t>(size()));
  run_exchange(
      *transport_,
      [&] {
        transport_->start_gather(std::as_bytes(std::span(&mine, 1)),
                                 std::as_writable_bytes(std::span(by_rank)));
      },
      [this] { interrupt(); });
  throw CommunicationError("{}", describe_mismatch(by_rank));
}

void OrderedCommunicator::exchange(const Posted& posted) {
  const DType dtype = posted.data.type.dtype;
  const std::span memory(static_cast<std::byte*>(posted.data.data), posted.data.bytes());
  const std::size_t step = std::max<std::size_t>(1, chunk_bytes_ / size_of(dtype)) * size_of(dtype);
  for (std::size_t begin = 0; begin < memory.size(); begin += step) {
    const auto chunk = memory.subspan(begin, std::min(step, memory.size() - begin));
    const auto start = [&] {
      if (posted.collective->kind == CollectiveKind::kBroadcast)
        return transport_->start_broadcast(chunk, posted.collective->root);
      transport_->start_all_reduce(chunk.data(), chunk.size() / size_of(dtype), dtype,
                                   Reduction::kSum);
    };
    run_exchange(*transport_, start, [this] { interrupt(); });
  }
}

void OrderedCommunicator::interrupt() const {
  if (stopping_)
    throw CommunicationError("rank {} closed its communicator with work in flight", rank());
  if (auto failure = world_.announced()) throw PeerFailed(*std::move(failure));
}

}  // namespace ddp::comm
