// y = (shifted and mirrored pixel / 255 - mean[c]) / stddev[c]. The compute type is an attribute,
// since the input is U8.
#include "core/ops/augment/augment.h"

#include <algorithm>

#include "core/ops/dtype_attribute.h"

namespace ddp {
namespace {

std::vector<TensorType> infer(const OpSignature& signature) {
  const TensorType& images = signature.inputs[0];
  const std::vector<double>& mean = signature.attributes.list("mean");
  const std::vector<double>& stddev = signature.attributes.list("stddev");
  if (images.shape.rank() != 4 || images.dtype != DType::kU8)
    throw ConfigError("the network input needs images [N, H, W, C] of U8");
  const auto channels = static_cast<std::size_t>(images.shape[3]);
  if (mean.size() != channels || stddev.size() != channels)
    throw ConfigError("normalisation has {} means and {} standard deviations for {} channels",
                      mean.size(), stddev.size(), channels);
  if (!std::ranges::all_of(stddev, [](double s) { return s > 0; }))
    throw ConfigError("a standard deviation of the normalisation is not positive");
  return {{images.shape, dtype_attribute(signature.attributes)}};
}

std::vector<TensorType> infer_augment(const OpSignature& signature) {
  if (signature.attributes.integer("crop_pad") < 0)
    throw ConfigError("crop_pad is {}, it cannot be negative",
                      signature.attributes.integer("crop_pad"));
  std::vector<TensorType> outputs = infer(signature);
  if (signature.inputs[1] != TensorType{{outputs[0].shape[0]}, DType::kI64})
    throw ConfigError("augmentation needs one sample id (I64) for each image");
  return outputs;
}

Cost cost(const OpSignature& s) {
  return {.flops = 2 * static_cast<double>(s.outputs[0].elements()), .bytes = bytes_touched(s)};
}

Attributes normalize_attributes(const Graph& graph, const NormalizeOptions& options) {
  return {{"mean", options.mean},
          {"stddev", options.stddev},
          {"dtype", std::string(name_of(graph.compute_dtype()))}};
}

const OpDefinition kNormalize{.name = "normalize", .infer = infer, .cost = cost};
const OpDefinition kAugment{.name = "augment", .infer = infer_augment, .cost = cost};
DDP_REGISTER_OP(kNormalize);
DDP_REGISTER_OP(kAugment);

}  // namespace

Value normalize(Value images, const NormalizeOptions& options) {
  Graph& graph = *images.graph;
  return graph.add("normalize", graph.unique_name("normalize"), {images},
                   normalize_attributes(graph, options));
}

Value augment(Value images, Value sample_ids, const AugmentOptions& options) {
  Graph& graph = *images.graph;
  Attributes attributes = normalize_attributes(graph, options.normalize);
  attributes.set("crop_pad", std::int64_t{options.crop_pad});
  attributes.set("flip", std::int64_t{options.flip});
  attributes.set("seed", static_cast<std::int64_t>(options.seed));
  return graph.add("augment", graph.unique_name("augment"), {images, sample_ids},
                   std::move(attributes));
}

}  // namespace ddp
