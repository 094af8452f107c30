// ResNet-18, -34 and -50 (He et al., CVPR 2016) as torchvision builds them: the stride of a
// bottleneck sits on its 3x3 convolution (v1.5), parameters and buffers have torchvision's names.
#include <array>
#include <utility>

#include "core/ops/add/add.h"
#include "core/ops/conv2d/conv2d.h"
#include "core/ops/linear/linear.h"
#include "core/ops/pool/pool.h"
#include "core/ops/relu/relu.h"
#include "models/layers.h"

namespace ddp::models {
namespace {

/// Images below this many pixels a side are shrunk too early by the stem for 224 pixels.
constexpr std::int64_t kSmallImage = 64;

Value conv(Value x, const std::string& name, std::int64_t filters, std::int64_t kernel,
           std::int64_t stride = 1) {
  return conv2d(x, {.name = name,
                    .filters = filters,
                    .kernel = kernel,
                    .stride = stride,
                    .pad = kernel / 2,
                    .init = FilterInit::kKaimingNormalFanOut});
}

Value norm(Value x, const std::string& name, const ModelOptions& options) {
  return batch_norm(x, {.name = name}, options);
}

/// The input of a block in the shape of its output.
Value shortcut(Value x, std::int64_t channels, std::int64_t stride, const ModelOptions& options) {
  if (stride == 1 && x.shape()[-1] == channels) return x;
  const Scope scope(*x.graph, "downsample");
  return norm(conv(x, "0", channels, 1, stride), "1", options);
}

using BlockFunction = Value (*)(Value x, std::int64_t width, std::int64_t stride,
                                const ModelOptions& options);

Value basic_block(Value x, std::int64_t width, std::int64_t stride, const ModelOptions& options) {
  Value y = relu(norm(conv(x, "conv1", width, 3, stride), "bn1", options));
  y = norm(conv(y, "conv2", width, 3), "bn2", options);
  return relu(add(y, shortcut(x, width, stride, options)));
}

Value bottleneck(Value x, std::int64_t width, std::int64_t stride, const ModelOptions& options) {
  constexpr std::int64_t kExpansion = 4;
  Value y = relu(norm(conv(x, "conv1", width, 1), "bn1", options));
  y = relu(norm(conv(y, "conv2", width, 3, stride), "bn2", options));
  y = norm(conv(y, "conv3", width * kExpansion, 1), "bn3", options);
  return relu(add(y, shortcut(x, width * kExpansion, stride, options)));
}

Value stem(Value images, const ModelOptions& options) {
  const std::int64_t side = std::min(images.shape()[1], images.shape()[2]);
  const bool small =
      options.stem == Stem::kSmall || (options.stem == Stem::kAuto && side < kSmallImage);
  Value x = small ? conv(images, "conv1", 64, 3) : conv(images, "conv1", 64, 7, 2);
  x = relu(norm(x, "bn1", options));
  return small ? x : max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
}

Value resnet(Value images, const std::array<int, 4>& depths, BlockFunction block,
             const ModelOptions& options) {
  Graph& graph = *images.graph;
  Value x = stem(images, options);
  for (int layer = 0; layer < 4; ++layer)
    for (int i = 0; i < depths[static_cast<std::size_t>(layer)]; ++i) {
      const Scope scope(graph, fmt::format("layer{}.{}", layer + 1, i));
      const Block recomputed(graph);
      x = block(x, std::int64_t{64} << layer, layer > 0 && i == 0 ? 2 : 1, options);
    }
  return linear(global_average_pool(x), {.name = "fc", .units = options.classes});
}

const DefaultInput kImageNet{
    .data = "synthetic", .channels = 3, .height = 224, .width = 224, .classes = 1000};

const Model kResnet18{.name = "resnet18",
                      .description = "ResNet-18, as torchvision's",
                      .build =
                          [](Graph&, Value images, const ModelOptions& options) {
                            return resnet(images, {2, 2, 2, 2}, basic_block, options);
                          },
                      .input = kImageNet};
const Model kResnet34{.name = "resnet34",
                      .description = "ResNet-34, as torchvision's",
                      .build =
                          [](Graph&, Value images, const ModelOptions& options) {
                            return resnet(images, {3, 4, 6, 3}, basic_block, options);
                          },
                      .input = kImageNet};
const Model kResnet50{.name = "resnet50",
                      .description = "ResNet-50 (v1.5), as torchvision's",
                      .build =
                          [](Graph&, Value images, const ModelOptions& options) {
                            return resnet(images, {3, 4, 6, 3}, bottleneck, options);
                          },
                      .input = kImageNet};
DDP_REGISTER_MODEL(kResnet18);
DDP_REGISTER_MODEL(kResnet34);
DDP_REGISTER_MODEL(kResnet50);

}  // namespace
}  // namespace ddp::models
