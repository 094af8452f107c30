// A multilayer perceptron: two hidden layers of 256. The smallest thing that trains, and the model
// of quick checks.
#include "core/ops/linear/linear.h"
#include "core/ops/relu/relu.h"
#include "core/ops/reshape/reshape.h"
#include "models/layers.h"

namespace ddp::models {
namespace {

Value build(Graph&, Value images, const ModelOptions& options) {
  Value x = flatten(images);
  x = relu(linear(x, {.name = "fc1", .units = 256}));
  x = relu(linear(x, {.name = "fc2", .units = 256}));
  x = drop(x, {.probability = options.dropout, .instance = 1}, options);
  return linear(x, {.name = "fc3", .units = options.classes});
}

const Model kMlp{.name = "mlp",
                 .description = "multilayer perceptron, two hidden layers of 256",
                 .build = build};
DDP_REGISTER_MODEL(kMlp);

}  // namespace
}  // namespace ddp::models
