// The default model: two 3x3 convolutions with pooling and two linear layers, 421,642 parameters on
// 28x28 images. No batch norm, so that its result is the same for any split of the global batch.
#include <algorithm>

#include "core/ops/bias/bias.h"
#include "core/ops/conv2d/conv2d.h"
#include "core/ops/linear/linear.h"
#include "core/ops/pool/pool.h"
#include "core/ops/relu/relu.h"
#include "core/ops/reshape/reshape.h"
#include "models/layers.h"

namespace ddp::models {
namespace {

Value block(Value x, const std::string& name, int filters) {
  x = bias(conv2d(x, {.name = name, .filters = filters, .kernel = 3, .pad = 1}), name);
  return max_pool(relu(x), {.kernel = 2});
}

constexpr std::int64_t kSmallestSide = 4;  // two pools halve it to 1

Value build(Graph&, Value images, const ModelOptions& options) {
  const std::int64_t height = images.shape()[1], width = images.shape()[2];
  if (std::min(height, width) < kSmallestSide)
    throw ConfigError(
        "model convnet halves its images twice, so they have to be {0}x{0} pixels or larger, but "
        "they are {1}x{2}; use --model mlp for images as small as these",
        kSmallestSide, height, width);
  Value x = block(images, "conv1", 32);
  x = block(x, "conv2", 64);
  x = drop(flatten(x), {.probability = options.dropout, .instance = 1}, options);
  x = relu(linear(x, {.name = "fc1", .units = 128}));
  x = drop(x, {.probability = options.dropout, .instance = 2}, options);
  return linear(x, {.name = "fc2", .units = options.classes});
}

const Model kConvnet{
    .name = "convnet", .description = "small convolutional net, the default", .build = build};
DDP_REGISTER_MODEL(kConvnet);

}  // namespace
}  // namespace ddp::models
