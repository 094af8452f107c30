// Images made from counters instead of files: each class has a coarse pattern, each sample is its
// class's pattern under noise. A sample depends on (seed, split, index) only, so every rank and
// every run sees the same set.
#pragma once

#include <memory>

#include "core/data/dataset.h"

namespace ddp {

/// `options.synthetic_size` samples of shape `options.synthetic_image` in `options.classes` classes
/// (0: ten).
std::unique_ptr<Dataset> make_synthetic_dataset(const DatasetOptions& options, Split split);

}  // namespace ddp
