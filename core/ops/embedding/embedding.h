// Embedding: a table of rows that ids pick from. The same table may also be the weight of a linear
// layer (tied weights): both ask the graph for a parameter of one name and shape.
#pragma once

#include <string>

#include "core/graph/graph.h"

namespace ddp {

struct Embedding {
  std::string name;
  std::int64_t entries = 0;   ///< V: ids are 0..V-1
  std::int64_t features = 0;  ///< D
};

/// y[..., :] = weight[ids[...], :] for ids I32 [..] of one to four axes: [.., D]. Its parameter
/// "<name>.weight" [V, D] starts normal with standard deviation 1, PyTorch's default, unless a
/// layer before made it; files hold it as memory does.
///
/// An id outside 0..V-1 reads and writes nothing out of bounds: its row of y is NaN, so that the
/// loss shows it, and it adds nothing to the gradient. The gradient of a row is summed in the order
/// of the ids, so it is the same bytes for any number of threads. ConfigError for ids of another
/// type or an empty table.
Value embedding(Value ids, const Embedding& layer);

}  // namespace ddp
