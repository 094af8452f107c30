#include "core/data/loader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "core/base/error.h"

namespace ddp {

namespace {

void read_item(const Dataset& dataset, const SampleIndex& index, std::int64_t number,
               std::size_t item, MicroBatch& into) {
  const std::size_t bytes = into.images.size() / into.labels.size();
  const std::span<std::uint8_t> image = std::span(into.images).subspan(item * bytes, bytes);
  const std::int64_t sample = index(number, static_cast<std::int64_t>(item));
  const bool padding = sample < 0;
  if (padding) std::fill(image.begin(), image.end(), std::uint8_t{0});
  into.labels[item] = padding ? 0 : dataset.read(sample, image);
  into.weights[item] = padding ? 0.0F : 1.0F;
  into.sample_ids[item] = padding ? 0 : sample;
}

}  // namespace

MicroBatch make_micro_batch(std::int64_t micro_batch, const Shape& image) {
  DDP_CHECK(micro_batch >= 1, "a micro-batch of {} samples was asked for", micro_batch);
  const auto m = static_cast<std::size_t>(micro_batch);
  MicroBatch batch;
  batch.images.resize(m * static_cast<std::size_t>(image.elements()));
  batch.labels.resize(m);
  batch.weights.resize(m);
  batch.sample_ids.resize(m);
  return batch;
}

void read_micro_batch(const Dataset& dataset, const SampleIndex& index, std::int64_t number,
                      MicroBatch& into) {
  for (std::size_t item = 0; item < into.labels.size(); ++item)
    read_item(dataset, index, number, item, into);
}

// Micro-batch k (from 0) lies in slot k modulo the number of slots. It is read when a thread draws
// ticket k, which it may once k - slots has been given back; it is handed over when its slot says
// that it holds k.
struct Loader::Impl {
  struct Slot {
    MicroBatch batch;
    std::int64_t holds = -1;
    std::exception_ptr error;
  };

  Impl(const Dataset& data, SampleIndex sample_index, const Options& opts)
      : dataset(data), index(std::move(sample_index)), options(opts) {
    DDP_CHECK(options.threads >= 1 && options.depth >= 1 && options.count >= 0,
              "a loader of {} threads, depth {}, {} micro-batches was asked for", options.threads,
              options.depth, options.count);
    // One more than is read ahead: the micro-batch that the consumer works on.
    slots.resize(
        static_cast<std::size_t>(std::min<std::int64_t>(options.depth + 1, options.count)));
    for (Slot& slot : slots)
      slot.batch = make_micro_batch(options.micro_batch, dataset.info().image);
    for (int i = 0; i < options.threads; ++i) {
      threads.emplace_back([this](const std::stop_token& stop) { read_ahead(stop); });
    }
  }

  ~Impl() {
    for (std::jthread& thread : threads) thread.request_stop();
  }

  Slot& slot_of(std::int64_t k) { return slots[static_cast<std::size_t>(k) % slots.size()]; }

  /// Draws the next ticket, waiting for its slot; -1 when nothing is left to read.
  std::int64_t draw(const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    slot_free.wait(lock, stop, [&] {
      return drawn == options.count || drawn < given_back + std::ssize(slots);
    });
    return stop.stop_requested() || drawn == options.count ? -1 : drawn++;
  }

  void read_ahead(const std::stop_token& stop) {
    for (std::int64_t k = draw(stop); k >= 0; k = draw(stop)) {
      Slot& slot = slot_of(k);
      std::exception_ptr error;
      try {
        for (std::size_t item = 0; item < slot.batch.labels.size(); ++item) {
          if (stop.stop_requested()) return;
          read_item(dataset, index, options.first + k, item, slot.batch);
        }
      } catch (...) {
        error = std::current_exception();
      }
      {
        const std::lock_guard lock(mutex);
        slot.error = std::move(error);
        slot.holds = k;
      }
      slot_ready.notify_one();
    }
  }

  const MicroBatch& next() {
    std::unique_lock lock(mutex);
    DDP_CHECK(handed < options.count, "micro-batch {} of {} was asked for", handed + 1,
              options.count);
    if (given_back < handed) {
      given_back = handed;
      slot_free.notify_one();
    }
    Slot& slot = slot_of(handed);
    if (slot.holds != handed) {
      const auto start = std::chrono::steady_clock::now();
      slot_ready.wait(lock, [&] { return slot.holds == handed; });
      waited += std::chrono::steady_clock::now() - start;
    }
    if (slot.error) std::rethrow_exception(slot.error);
    ++handed;
    return slot.batch;
  }

  const Dataset& dataset;
  const SampleIndex index;
  const Options options;

  std::mutex mutex;
  std::condition_variable_any slot_free;
  std::condition_variable slot_ready;
  std::vector<Slot> slots;
  std::int64_t drawn = 0;       // micro-batches whose reading has begun
  std::int64_t handed = 0;      // returned by next()
  std::int64_t given_back = 0;  // of these, no longer in use
  std::chrono::steady_clock::duration waited{};
  std::vector<std::jthread> threads;  // last: joined before anything they use is gone
};

Loader::Loader(const Dataset& dataset, SampleIndex index, const Options& options)
    : impl_(std::make_unique<Impl>(dataset, std::move(index), options)) {}
Loader::~Loader() = default;

const MicroBatch& Loader::next() { return impl_->next(); }

std::vector<std::span<std::byte>> Loader::memory() {
  std::vector<std::span<std::byte>> all;
  for (Impl::Slot& slot : impl_->slots) {
    all.push_back(std::as_writable_bytes(std::span(slot.batch.images)));
    all.push_back(std::as_writable_bytes(std::span(slot.batch.labels)));
    all.push_back(std::as_writable_bytes(std::span(slot.batch.weights)));
    all.push_back(std::as_writable_bytes(std::span(slot.batch.sample_ids)));
  }
  return all;
}

double Loader::waited_seconds() const {
  return std::chrono::duration<double>(impl_->waited).count();
}

}  // namespace ddp
