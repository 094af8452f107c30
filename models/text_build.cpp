#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "core/base/nearest.h"
#include "core/base/text.h"
#include "core/config/text_message.h"
#include "core/graph/layer_error.h"
#include "core/ops/add/add.h"
#include "core/ops/bias/bias.h"
#include "core/ops/conv2d/conv2d.h"
#include "core/ops/gelu/gelu.h"
#include "core/ops/layernorm/layernorm.h"
#include "core/ops/linear/linear.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pool/pool.h"
#include "core/ops/relu/relu.h"
#include "core/ops/reshape/reshape.h"
#include "core/ops/softmax/softmax.h"
#include "models/layers.h"
#include "models/text.h"

namespace ddp::models {
namespace {

const std::string kImages = "images";

constexpr int kOnly = -1;  // protobuf's index of a field that is not repeated
template <class Message>
const google::protobuf::FieldDescriptor* field_of(int number) {
  return Message::descriptor()->FindFieldByNumber(number);
}

Value convolution(Value x, const std::string& name, const ConvolutionText& layer) {
  if (!layer.has_filters()) throw ConfigError("a convolution needs its number of filters");
  const Value y = conv2d(x, {.name = name,
                             .filters = layer.filters(),
                             .kernel = layer.kernel(),
                             .stride = layer.stride(),
                             .pad = layer.pad(),
                             .init = layer.init() == ConvolutionText::KAIMING_NORMAL_FAN_OUT
                                         ? FilterInit::kKaimingNormalFanOut
                                         : FilterInit::kUniformFanIn});
  return layer.bias() ? bias(y, name) : y;
}

/// For the messages of max and average pooling, which have the same fields.
template <class PoolText>
PoolOptions pool_options(const std::string& name, const PoolText& layer) {
  return {.name = name, .kernel = layer.kernel(), .stride = layer.stride(), .pad = layer.pad()};
}

Value matrix_product(Value a, Value b, const std::string& name, const MatmulText& layer) {
  // The first axis counts samples. What a sample gives may not depend on which others are in its
  // micro-batch, least of all on those that only fill it up.
  if (a.shape().rank() == 2 && b.shape().rank() == 2)
    throw ConfigError(
        "a product of two matrices [N, columns] mixes samples; multiply what has at least three "
        "axes, [N, ..., rows, columns]");
  return matmul(
      a, b, {.name = name, .transpose_a = layer.transpose_a(), .transpose_b = layer.transpose_b()});
}

/// What the user calls a layer of this kind: "max_pool".
const std::string& kind_of(const LayerText& layer) {
  return field_of<LayerText>(layer.kind_case())->name();
}

/// Shapes of what a layer reads: "'conv1' 2x28x28x32".
std::string describe(const std::vector<std::string>& names, const std::vector<Value>& values) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += fmt::format("{}'{}' {}", i ? ", " : "", names[i], values[i].shape().to_string());
  return text;
}

}  // namespace

std::size_t bottoms_of(const LayerText& layer) {
  return layer.has_add() || layer.has_matmul() ? 2 : 1;
}

TextModel::TextModel(std::string text, std::string name)
    : text_(std::move(text)), name_(std::move(name)) {
  Positions positions;
  read_text_message(text_, name_, model_, positions);
  if (model_.layer_size() == 0) throw ConfigError("{}: the model has no layer", name_);
  for (int i = 0; i < model_.layer_size(); ++i)
    positions_.push_back(
        where(positions.GetLocation(field_of<ModelText>(ModelText::kLayerFieldNumber), i)));
  check_input(positions);
  check_layers();
  number_dropouts(positions);
}

std::string TextModel::where(int layer) const {
  return positions_[static_cast<std::size_t>(layer)];
}
std::string TextModel::where(google::protobuf::TextFormat::ParseLocation location) const {
  return fmt::format("{}:{}", name_, position_of(text_, location).line_and_column());
}

void TextModel::check_input(const Positions& positions) const {
  const InputText& input = model_.input();
  const struct {
    int field;
    std::int64_t value, least, most;
  } numbers[] = {{InputText::kChannelsFieldNumber, input.channels(), 1, kMaxChannels},
                 {InputText::kHeightFieldNumber, input.height(), 1, kMaxSide},
                 {InputText::kWidthFieldNumber, input.width(), 1, kMaxSide},
                 {InputText::kClassesFieldNumber, input.classes(), 2,
                  std::numeric_limits<std::int32_t>::max()}};
  for (const auto& [number, value, least, most] : numbers) {
    if (value >= least && value <= most) continue;
    const auto* field = field_of<InputText>(number);
    const Positions& inside =
        *positions.GetTreeForNested(field_of<ModelText>(ModelText::kInputFieldNumber), kOnly);
    throw ConfigError("{}: {} of the input is {}, legal are {}..{}",
                      where(inside.GetLocation(field, kOnly)), field->name(), value, least, most);
  }
}

void TextModel::check_layers() const {
  std::set<std::string> names;
  for (int i = 0; i < model_.layer_size(); ++i) {
    const LayerText& layer = model_.layer(i);
    if (layer.name().empty() || layer.name() == kImages)
      throw ConfigError("{}: a layer needs a name, and '{}' is the input's", where(i), kImages);
    if (!names.insert(layer.name()).second)
      throw ConfigError("{}: a second layer is called '{}'", where(i), layer.name());
    if (layer.kind_case() == LayerText::KIND_NOT_SET)
      throw ConfigError("{}: layer '{}' does not say what it is: add relu {{}}, linear {{}}, …",
                        where(i), layer.name());
  }
}

void TextModel::number_dropouts(const Positions& positions) {
  instances_.resize(positions_.size());
  std::map<std::int64_t, std::string> taken;  // by instance, the layer
  std::int64_t position = 0;
  for (int i = 0; i < model_.layer_size(); ++i) {
    const LayerText& layer = model_.layer(i);
    if (!layer.has_dropout()) continue;
    ++position;
    const bool given = layer.dropout().has_instance();
    const std::int64_t instance = given ? layer.dropout().instance() : position;
    instances_[static_cast<std::size_t>(i)] = instance;
    const auto [other, added] = taken.emplace(instance, layer.name());
    if (added) continue;
    const Positions& inside =
        *positions.GetTreeForNested(field_of<ModelText>(ModelText::kLayerFieldNumber), i)
             ->GetTreeForNested(field_of<LayerText>(LayerText::kDropoutFieldNumber), kOnly);
    throw ConfigError(
        "{}: dropout '{}' has instance {}{}, as '{}' has: both would drop the same elements; give "
        "it another",
        given ? where(inside.GetLocation(field_of<DropoutText>(DropoutText::kInstanceFieldNumber),
                                         kOnly))
              : where(i),
        layer.name(), instance, given ? "" : " by its place among the dropouts", other->second);
  }
}

std::vector<std::string> TextModel::block_notes() const {
  std::vector<std::string> notes;
  std::set<std::string> begun;
  for (int i = 0; i < model_.layer_size(); ++i) {
    const LayerText& layer = model_.layer(i);
    if (!layer.has_block() || (i > 0 && model_.layer(i - 1).block() == layer.block())) continue;
    if (!begun.insert(layer.block()).second)
      notes.push_back(fmt::format(
          "{}: block '{}' ended at layer '{}', so this is another block of that name: layers that "
          "--recompute block shall compute again as one have to be neighbours",
          where(i), layer.block(), model_.layer(i - 1).name()));
  }
  return notes;
}

DefaultInput TextModel::input() const {
  const InputText& input = model_.input();
  return {.data = input.data(),
          .channels = input.channels(),
          .height = input.height(),
          .width = input.width(),
          .classes = input.classes()};
}

Value TextModel::build_layer(int index, const std::vector<Value>& bottoms,
                             const ModelOptions& options) const {
  const LayerText& layer = model_.layer(index);
  const Value x = bottoms[0];
  switch (layer.kind_case()) {
    case LayerText::kConvolution: return convolution(x, layer.name(), layer.convolution());
    case LayerText::kBatchnorm:
      return batch_norm(x,
                        {.name = layer.name(),
                         .eps = layer.batchnorm().eps(),
                         .momentum = layer.batchnorm().momentum()},
                        options);
    case LayerText::kLayernorm:
      return layernorm(x, {.name = layer.name(), .eps = layer.layernorm().eps()});
    case LayerText::kRelu: return relu(x, layer.name());
    case LayerText::kGelu:
      return gelu(x,
                  {.name = layer.name(),
                   .approximate = layer.gelu().approximate() == GeluText::TANH ? "tanh" : "none"});
    case LayerText::kSoftmax: return softmax(x, layer.name());
    case LayerText::kMaxPool: return max_pool(x, pool_options(layer.name(), layer.max_pool()));
    case LayerText::kAveragePool:
      return avg_pool(x, pool_options(layer.name(), layer.average_pool()));
    case LayerText::kGlobalAveragePool: return global_average_pool(x, layer.name());
    case LayerText::kFlatten: return flatten(x, layer.name());
    case LayerText::kLinear:
      return linear(x, {.name = layer.name(),
                        .units = layer.linear().has_units() ? layer.linear().units()
                                                            : std::int64_t{options.classes},
                        .bias = layer.linear().bias()});
    case LayerText::kDropout:
      return drop(x,
                  {.name = layer.name(),
                   .probability = layer.dropout().has_probability() ? layer.dropout().probability()
                                                                    : options.dropout,
                   .instance = instances_[static_cast<std::size_t>(index)]},
                  options);
    case LayerText::kAdd: return add(x, bottoms[1], layer.name());
    case LayerText::kMatmul: return matrix_product(x, bottoms[1], layer.name(), layer.matmul());
    case LayerText::KIND_NOT_SET: break;
  }
  throw InternalError(fmt::format("layer '{}' has no builder", layer.name()),
                      std::source_location::current());
}

std::vector<Value> TextModel::bottoms(int index, const std::vector<std::string>& names,
                                      const std::map<std::string, Value>& built) const {
  const LayerText& layer = model_.layer(index);
  if (const std::size_t needed = bottoms_of(layer); names.size() != needed)
    throw ConfigError("{}: layer '{}' ({}) needs {}, has {}", where(index), layer.name(),
                      kind_of(layer), count_text(static_cast<std::int64_t>(needed), "bottom"),
                      layer.bottom_size());
  std::vector<Value> values;
  for (const std::string& name : names) {
    if (const auto found = built.find(name); found != built.end()) {
      values.push_back(found->second);
      continue;
    }
    if (name == layer.name()) throw ConfigError("{}: layer '{}' reads itself", where(index), name);
    for (int below = index + 1; below < model_.layer_size(); ++below)
      if (model_.layer(below).name() == name)
        throw ConfigError(
            "{}: layer '{}' reads '{}', which stands below it, at {}: layers have to be listed in "
            "order, each below those that it reads",
            where(index), layer.name(), name, where(below));
    std::vector<std::string> known;
    for (const auto& each : built) known.push_back(each.first);
    throw ConfigError("{}: layer '{}' reads '{}', but there is no such layer; did you mean '{}'?",
                      where(index), layer.name(), name, nearest(name, known));
  }
  return values;
}

Value TextModel::build(Graph& graph, Value images, const ModelOptions& options) const {
  std::map<std::string, Value> built{{kImages, images}};
  std::set<std::string> read;
  std::unique_ptr<Block> block;
  std::string previous = kImages;
  for (int i = 0; i < model_.layer_size(); ++i) {
    const LayerText& layer = model_.layer(i);
    if (i == 0 || layer.block() != model_.layer(i - 1).block()) {
      block.reset();
      if (layer.has_block()) block = std::make_unique<Block>(graph);
    }
    std::vector<std::string> names(layer.bottom().begin(), layer.bottom().end());
    if (names.empty()) names = {previous};
    const std::vector<Value> values = bottoms(i, names, built);
    read.insert(names.begin(), names.end());
    const auto fail = [&](std::string_view why) {
      throw ConfigError("{}: layer '{}' ({} of {}): {}", where(i), layer.name(), kind_of(layer),
                        describe(names, values), why);
    };
    try {
      built[layer.name()] = build_layer(i, values, options);
    } catch (const LayerError& error) {
      fail(error.detail());
    } catch (const ConfigError& error) {
      fail(error.what());
    }
    previous = layer.name();
  }
  const int last = model_.layer_size() - 1;
  for (int i = 0; i < last; ++i)
    if (!read.contains(model_.layer(i).name()))
      throw ConfigError("{}: nobody reads layer '{}'; a model ends with one layer, its last",
                        where(i), model_.layer(i).name());
  const Value logits = built.at(previous);
  if (logits.shape() != Shape{images.shape()[0], options.classes})
    throw ConfigError(
        "{}: the last layer, '{}', gives {}; it has to give {}, one number for each sample and "
        "class",
        where(last), previous, logits.shape().to_string(),
        Shape({images.shape()[0], options.classes}).to_string());
  return logits;
}

}  // namespace ddp::models
