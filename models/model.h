// Registry of models. A model is a function that adds layers to a graph; its file registers it, and
// nothing else has to know it. The launcher finds models by name and hands the function on to core.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"

namespace ddp::models {

/// The first layers of a ResNet: for images of 224 pixels (7x7 convolution and max pool, which
/// shrink them four times), for small ones (3x3 convolution), or the one that suits the images.
enum class Stem : std::uint8_t { kAuto, kImageNet, kSmall };

/// Largest synthetic image: channels, and pixels of a side. More is a slip of the keyboard.
inline constexpr std::int64_t kMaxChannels = 4096, kMaxSide = 4096;

/// What a model is trained on when no data is named.
struct DefaultInput {
  std::string data = "fashion-mnist";
  std::int64_t channels = 1, height = 28, width = 28;
  int classes = 10;
};

/// What a model may depend on beside its input.
struct ModelOptions {
  int classes = 10;
  double dropout = 0;      ///< probability, for models that have dropout
  bool training = true;    ///< evaluation graphs leave dropout out
  std::uint64_t seed = 1;  ///< of dropout masks
  Stem stem = Stem::kAuto;
  Value sample_ids;      ///< [N] I64, the counter of per-sample randomness
  Value sample_weights;  ///< [N] F32, 0 for padding, which batch norm leaves out
};

struct Model {
  std::string_view name;
  std::string_view description;  ///< one line for --help
  /// images [N, H, W, C] in compute dtype -> logits [N, classes]. Throws ConfigError for images it
  /// cannot take.
  Value (*build)(Graph& graph, Value images, const ModelOptions& options);
  DefaultInput input = {};
};

/// The model called `name`; ConfigError with the nearest name and the list when there is none.
const Model& find_model(std::string_view name);
/// All models, by name.
std::vector<const Model*> all_models();

struct ModelRegistrar {
  explicit ModelRegistrar(const Model& model);
};
#define DDP_REGISTER_MODEL(model) \
  static const ::ddp::models::ModelRegistrar registrar_##model(model)

}  // namespace ddp::models
