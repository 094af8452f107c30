#include "core/train/evaluate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>

#include "core/comm/gather.h"
#include "core/ops/loss/loss.h"
#include "core/tensor/bfloat16.h"

namespace ddp {
namespace {

/// Sum over ranks, in their order. The `score` op rounds losses so that it is exact, in any order.
double sum_in_rank_order(World& world, double mine) {
  const std::vector<double> all = gather_elements(world, std::vector{mine});
  return std::accumulate(all.begin(), all.end(), 0.0);
}

/// Elements of type T as doubles.
template <class T>
void download_as(Backend& backend, const TensorView& from, std::vector<double>& to) {
  std::vector<T> narrow(to.size());
  backend.download(narrow.data(), from.data, from.bytes());
  std::ranges::transform(narrow, to.begin(), [](T x) { return static_cast<double>(x); });
}

}  // namespace

Evaluator::Evaluator(const Program& program, Backend& backend, const MemoryMap& memory,
                     World& world, const Dataset& dataset, const Options& options)
    : backend_(backend),
      world_(world),
      dataset_(dataset),
      options_(options),
      batch_(program.options().evaluation_batch),
      classes_(program.options().classes),
      state_(backend.allocate(sizeof(StepState))),
      executor_(program.evaluation(), backend, memory.with(Region::kState, state_.data()), nullptr),
      predictions_(static_cast<std::size_t>(batch_)),
      logits_(predictions_.size() * static_cast<std::size_t>(classes_)) {}

void Evaluator::read_predictions() {
  const TensorView view = executor_.output(OutputIndex::kPredictions);
  backend_.download(predictions_.data(), view.data, view.bytes());
}

void Evaluator::read_logits() {
  const TensorView view = executor_.output(OutputIndex::kLogits);
  switch (view.type.dtype) {
    case DType::kF64: return backend_.download(logits_.data(), view.data, view.bytes());
    case DType::kBF16: return download_as<BFloat16>(backend_, view, logits_);
    default: return download_as<float>(backend_, view, logits_);
  }
}

Evaluation Evaluator::run(const BatchObserver& observer) {
  StepState state;
  backend_.upload(state_.data(), &state, sizeof(state));

  // Batch `number` of this rank is batch number * ranks + rank of the set.
  const std::int64_t size = dataset_.info().size;
  const std::int64_t ranks = world_.size(), rank = world_.rank();
  const SampleIndex index = [=, batch = batch_](std::int64_t number, std::int64_t item) {
    const std::int64_t sample = (number * ranks + rank) * batch + item;
    return sample < size ? sample : -1;
  };
  const std::int64_t batches = (size + batch_ - 1) / batch_;
  const std::int64_t mine = (batches - rank + ranks - 1) / ranks;
  Loader loader(dataset_, index,
                {.micro_batch = batch_,
                 .first = 0,
                 .count = mine,
                 .threads = options_.loader_threads,
                 .depth = options_.prefetch});
  std::vector<std::int64_t> by_class(2 * static_cast<std::size_t>(classes_));
  const std::span<std::int64_t> labels = std::span(by_class).first(by_class.size() / 2);
  const std::span<std::int64_t> predictions = std::span(by_class).last(by_class.size() / 2);
  InputQueue queue(backend_, loader, executor_.plan());
  for (std::int64_t i = 0; i < mine; ++i) {
    queue.prefetch();
    const MicroBatch& batch = queue.feed(executor_);
    executor_.run();
    read_predictions();
    for (std::size_t item = 0; item < predictions_.size(); ++item) {
      if (batch.weights[item] == 0) continue;
      ++labels[static_cast<std::size_t>(batch.labels[item])];
      if (predictions_[item] != kNoPrediction)
        ++predictions[static_cast<std::size_t>(predictions_[item])];
    }
    if (!observer) continue;
    read_logits();
    observer({.labels = batch.labels,
              .weights = batch.weights,
              .sample_ids = batch.sample_ids,
              .predictions = predictions_,
              .logits = logits_});
  }

  backend_.download(&state, state_.data(), sizeof(state));
  std::array<std::int64_t, 4> counts{
      static_cast<std::int64_t>(state.weight_sum), static_cast<std::int64_t>(state.correct_top1),
      static_cast<std::int64_t>(state.correct_top5), static_cast<std::int64_t>(state.nonfinite)};
  world_.sum(counts);
  world_.sum(by_class);
  const double loss = sum_in_rank_order(world_, state.loss_sum);
  const auto [samples, top1, top5, nonfinite] = counts;
  DDP_CHECK(samples == size, "evaluation saw {} of {} samples", samples, size);
  const auto n = static_cast<double>(samples);
  return {.samples = samples,
          .loss = nonfinite > 0 ? std::numeric_limits<double>::quiet_NaN() : loss / n,
          .top1 = static_cast<double>(top1) / n,
          .top5 = static_cast<double>(top5) / n,
          .labels = {labels.begin(), labels.end()},
          .predictions = {predictions.begin(), predictions.end()}};
}

}  // namespace ddp
