// Registry of models. A model is a function that adds layers to a graph; its file registers it, and
// nothing else has to know it. The launcher finds models by name and hands the function on to core.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"

namespace ddp::models {

/// What a model may depend on beside its input.
struct ModelOptions {
  int classes = 10;
  double dropout = 0;      ///< probability, for models that have dropout
  bool training = true;    ///< evaluation graphs leave dropout out
  std::uint64_t seed = 1;  ///< of dropout masks
  Value sample_ids;        ///< [N] I64, the counter of per-sample randomness
  Value sample_weights;    ///< [N] F32, 0 for padding, which batch norm leaves out
};

struct Model {
  std::string_view name;
  std::string_view description;  ///< one line for --help
  /// images [N, H, W, C] in compute dtype -> logits [N, classes]. Throws ConfigError for images it
  /// cannot take.
  Value (*build)(Graph& graph, Value images, const ModelOptions& options);
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
