#include "core/train/input_queue.h"

#include <span>

#include "core/train/program.h"

namespace ddp {
namespace {

/// The fields of a micro-batch in the order of graph inputs (InputIndex).
std::array<std::span<const std::byte>, 4> fields_of(const MicroBatch& batch) {
  std::array<std::span<const std::byte>, 4> fields;
  fields[InputIndex::kImages] = std::as_bytes(std::span(batch.images));
  fields[InputIndex::kLabels] = std::as_bytes(std::span(batch.labels));
  fields[InputIndex::kWeights] = std::as_bytes(std::span(batch.weights));
  fields[InputIndex::kSampleIds] = std::as_bytes(std::span(batch.sample_ids));
  return fields;
}

}  // namespace

void upload(const MicroBatch& batch, Backend& backend, const Executor& executor) {
  const auto fields = fields_of(batch);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const TensorView to = executor.input(i);
    DDP_CHECK(fields[i].size() == to.bytes(), "a micro-batch of {} bytes for an input of {}",
              fields[i].size(), to.bytes());
    backend.upload(to.data, fields[i].data(), to.bytes());
  }
}

InputQueue::InputQueue(Backend& backend, Loader& loader, const Plan& plan)
    : backend_(backend), loader_(loader), plan_(plan) {
  if (!backend.is_asynchronous()) return;
  for (const std::span<std::byte> memory : loader.memory()) pins_.push_back(backend.pin(memory));
  for (Slot& slot : slots_)
    slot = {.memory = backend.allocate(plan.memory.input),
            .copied = backend.make_event(),
            .consumed = backend.make_event()};
  backend.compute().synchronize();  // the memory is zeroed in its order
}

InputQueue::~InputQueue() {
  // An error here was one of an earlier call, too, and is on its way already.
  try {
    if (backend_.is_asynchronous()) backend_.copies().synchronize();
  } catch (const Error&) {
  }
}

void InputQueue::prefetch() {
  Slot& slot = slots_[next_];
  // The loader reuses the memory of the last micro-batch from here on.
  if (batch_ != nullptr && backend_.is_asynchronous()) slots_[1 - next_].copied->wait();
  batch_ = &loader_.next();
  if (!backend_.is_asynchronous()) return;
  const auto fields = fields_of(*batch_);
  backend_.copies().wait_for(*slot.consumed);
  for (std::size_t i = 0; i < fields.size(); ++i)
    backend_.copy_ahead(slot.memory.data() + plan_.inputs[i].offset, fields[i].data(),
                        fields[i].size());
  backend_.copies().record(*slot.copied);
}

const MicroBatch& InputQueue::feed(const Executor& executor) {
  if (!backend_.is_asynchronous()) {
    upload(*batch_, backend_, executor);
    return *batch_;
  }
  Slot& slot = slots_[next_];
  backend_.compute().wait_for(*slot.copied);
  for (std::size_t i = 0; i < plan_.inputs.size(); ++i)
    backend_.copy(executor.input(i).data, slot.memory.data() + plan_.inputs[i].offset,
                  plan_.inputs[i].type.bytes());
  backend_.compute().record(*slot.consumed);
  next_ = 1 - next_;
  return *batch_;
}

}  // namespace ddp
