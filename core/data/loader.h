// Loader: threads read micro-batches ahead of training into a fixed ring of host buffers and hand
// them over in order. The ring bounds memory; the time the consumer waits is measured, since a
// starving GPU is otherwise invisible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/data/dataset.h"

namespace ddp {

/// One rank's input of one micro-step. Padding has weight 0, label 0, sample id 0 and a black
/// image.
struct MicroBatch {
  std::vector<std::uint8_t> images;  ///< [m, H, W, C]
  std::vector<std::int32_t> labels;  ///< [m]
  std::vector<float> weights;        ///< [m]
  std::vector<std::int64_t>
      sample_ids;  ///< [m], index in the data set: the counter of augmentation and dropout
};

/// Index in the data set of item `item` of micro-batch `number`, or -1 for padding. Pure and
/// thread-safe.
using SampleIndex = std::function<std::int64_t(std::int64_t number, std::int64_t item)>;

class Loader {
 public:
  struct Options {
    std::int64_t micro_batch = 0;
    std::int64_t first = 0, count = 0;  ///< micro-batches [first, first + count) of `index`
    int threads = 1;
    int depth = 4;  ///< micro-batches read ahead
  };
  Loader(const Dataset& dataset, SampleIndex index, const Options& options);
  ~Loader();  ///< stops and joins the threads, wherever they are

  /// The next micro-batch, valid until the following call. Rethrows an error of a reading thread.
  /// Allocates nothing.
  const MicroBatch& next();
  /// The memory of all micro-batches that next() can return, for pinning. It stays where it is.
  std::vector<std::span<std::byte>> memory();
  /// Seconds that calls of next() have waited so far.
  double waited_seconds() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Reads one micro-batch on the calling thread: what the threads do, and what a re-run of a step
/// uses.
void read_micro_batch(const Dataset& dataset, const SampleIndex& index, std::int64_t number,
                      MicroBatch& into);
MicroBatch make_micro_batch(std::int64_t micro_batch, const Shape& image);

}  // namespace ddp
