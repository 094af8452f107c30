#include <google/protobuf/text_format.h>

#include <map>

#include "core/ops/flag_attribute.h"
#include "models/text.h"

namespace ddp::models {
namespace {

/// Of max and average pooling, whose messages have the same fields.
template <class PoolText>
void describe_pool(const Attributes& attributes, PoolText& text) {
  text.set_kernel(static_cast<int>(attributes.integer("kernel")));
  if (attributes.integer("stride") != text.kernel())
    text.set_stride(static_cast<int>(attributes.integer("stride")));
  if (attributes.integer("pad") != 0) text.set_pad(static_cast<int>(attributes.integer("pad")));
}

/// Turns forward ops into layers, one after the other.
class Printer {
 public:
  Printer(const Graph& graph, const ModelOptions& options) : graph_(graph), options_(options) {}

  ModelText run() {
    for (const Op& op : graph_.ops())
      if (!take_bias(op)) add_layer(op);
    return std::move(model_);
  }

 private:
  /// A bias behind a convolution or linear layer of its name is part of that layer.
  bool take_bias(const Op& op) {
    if (op.definition->name != "bias" || layer_of_.at(op.inputs[0]) != last_) return false;
    LayerText& layer = *model_.mutable_layer(last_);
    if (op.name != layer.name() + ".bias") return false;
    if (layer.has_convolution())
      layer.mutable_convolution()->set_bias(true);
    else if (layer.has_linear())
      layer.mutable_linear()->clear_bias();
    else
      return false;
    layer_of_[op.outputs[0]] = last_;
    return true;
  }

  void add_layer(const Op& op) {
    LayerText layer;
    layer.set_name(op.name);
    if (op.block != kNoBlock) layer.set_block(std::to_string(op.block));
    describe(op, layer);
    const auto bottom = [&](ValueId value) {
      const auto found = layer_of_.find(value);
      return found == layer_of_.end() ? -1 : found->second;
    };
    const std::size_t bottoms = bottoms_of(layer);
    if (bottoms > 1 || bottom(op.inputs[0]) != last_)
      for (std::size_t i = 0; i < bottoms; ++i) {
        const int index = bottom(op.inputs[i]);
        layer.add_bottom(index < 0 ? "images" : model_.layer(index).name());
      }
    *model_.add_layer() = layer;
    last_ = model_.layer_size() - 1;
    layer_of_[op.outputs[0]] = last_;
  }

  void describe(const Op& op, LayerText& layer) const {
    const std::string_view kind = op.definition->name;
    const Attributes& attributes = op.attributes;
    if (kind == "conv2d") {
      const Parameter& filters = *graph_.parameter_of(op.inputs[1]);
      const Shape& shape = graph_.value(filters.value).type.shape;
      ConvolutionText& text = *layer.mutable_convolution();
      text.set_filters(shape[0]);
      text.set_kernel(shape[1]);
      if (attributes.integer("stride") != text.stride())
        text.set_stride(attributes.integer("stride"));
      if (attributes.integer("pad") != text.pad()) text.set_pad(attributes.integer("pad"));
      if (filters.init.kind == Init::Kind::kNormal)
        text.set_init(ConvolutionText::KAIMING_NORMAL_FAN_OUT);
    } else if (kind == "linear") {
      layer.mutable_linear()->set_units(graph_.value(op.outputs[0]).type.shape[1]);
      layer.mutable_linear()->set_bias(false);  // until its bias follows
    } else if (kind == "batchnorm") {
      BatchNormText& text = *layer.mutable_batchnorm();
      if (attributes.real("eps") != text.eps()) text.set_eps(attributes.real("eps"));
      for (const RunningStatistics& running : graph_.statistics())
        if (running.name == op.name && running.momentum != text.momentum())
          text.set_momentum(running.momentum);
    } else if (kind == "layernorm") {
      LayerNormText& text = *layer.mutable_layernorm();
      if (attributes.real("eps") != text.eps()) text.set_eps(attributes.real("eps"));
    } else if (kind == "relu") {
      layer.mutable_relu();
    } else if (kind == "gelu") {
      GeluText& text = *layer.mutable_gelu();
      if (attributes.text("approximate") == "tanh") text.set_approximate(GeluText::TANH);
    } else if (kind == "softmax") {
      layer.mutable_softmax();
    } else if (kind == "add") {
      layer.mutable_add();
    } else if (kind == "matmul" && graph_.value(op.outputs[0]).type.shape.rank() > 2) {
      MatmulText& text = *layer.mutable_matmul();
      if (flag(attributes, "transpose_a")) text.set_transpose_a(true);
      if (flag(attributes, "transpose_b")) text.set_transpose_b(true);
    } else if (kind == "global_average_pool") {
      layer.mutable_global_average_pool();
    } else if (kind == "max_pool") {
      describe_pool(attributes, *layer.mutable_max_pool());
    } else if (kind == "avg_pool") {
      describe_pool(attributes, *layer.mutable_average_pool());
    } else if (kind == "reshape" && graph_.value(op.outputs[0]).type.shape.rank() == 2) {
      layer.mutable_flatten();
    } else if (kind == "dropout") {
      DropoutText& text = *layer.mutable_dropout();
      text.set_instance(attributes.integer("instance"));
      if (attributes.real("probability") != options_.dropout)
        text.set_probability(attributes.real("probability"));
    } else {
      throw ConfigError("layer '{}' ({}) has no form as text", op.name, kind);
    }
  }

  const Graph& graph_;
  const ModelOptions& options_;
  ModelText model_;
  std::map<ValueId, int> layer_of_;  ///< by value, the layer that gives it
  int last_ = -1;
};

}  // namespace

std::string print_model(const Graph& graph, const DefaultInput& input,
                        const ModelOptions& options) {
  ModelText model = Printer(graph, options).run();
  InputText& text = *model.mutable_input();
  text.set_data(input.data);
  text.set_channels(input.channels);
  text.set_height(input.height);
  text.set_width(input.width);
  text.set_classes(input.classes);
  std::string out;
  google::protobuf::TextFormat::PrintToString(model, &out);
  return out;
}

}  // namespace ddp::models
