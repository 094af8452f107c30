#include "core/ops/batchnorm/batchnorm.h"

#include <cmath>

#include "core/graph/differentiate.h"
#include "core/ops/flag_attribute.h"

namespace ddp {
namespace {

/// Checks x [N, ..., C] and `vectors` inputs [C] of the master type from `first` on; returns C.
std::int64_t check_channels(const OpSignature& s, const TensorType& x, std::size_t first,
                            std::size_t vectors) {
  if (x.shape.rank() < 2) throw ConfigError("batch norm needs samples of channels [N, ..., C]");
  const std::int64_t channels = x.shape[-1];
  const DType master = master_dtype(x.dtype);
  for (std::size_t i = first; i < first + vectors; ++i)
    if (s.inputs[i] != TensorType{{channels}, master})
      throw ConfigError("batch norm of {} channels needs one number of {} for each", channels,
                        name_of(master));
  return channels;
}

void check_sample_weights(const TensorType& weights, const TensorType& x) {
  if (weights != TensorType{{x.shape[0]}, DType::kF32})
    throw ConfigError("batch norm needs one weight (F32) for each of the {} samples", x.shape[0]);
}

void check_addend(const OpSignature& s, std::size_t index) {
  if (s.inputs.size() > index && s.inputs[index] != s.inputs[0])
    throw ConfigError("what is added to the normalised values has another type");
}

std::vector<TensorType> infer(const OpSignature& s) {
  const TensorType& x = s.inputs[0];
  const std::int64_t channels = check_channels(s, x, 1, 2);
  check_sample_weights(s.inputs[3], x);
  check_addend(s, 4);
  if (x.elements() == channels)
    throw ConfigError(
        "batch norm has one value per channel only, which has no variance; give a --micro-batch of "
        "2 or more, or larger images");
  const DType master = master_dtype(x.dtype);
  const TensorType per_channel{Shape{channels}, master};
  return {x, per_channel, per_channel, {Shape{2 * channels + 1}, master}};
}

void gradient(GradientBuilder& b, const OpRef& op) {
  const Value x = op.input(0), weight = op.input(1), bias = op.input(2);
  const std::vector<Value> gradients =
      b.emit_all("batchnorm_backward", op, "backward",
                 {b.grad(op.output(0)), x, weight, op.output(1), op.output(2), op.input(3)});
  b.give(x, gradients[0]);
  b.give(weight, gradients[1]);
  b.give(bias, gradients[2]);
}

// Statistics and normalisation each touch x once; y stands for what is written.
const OpDefinition kBatchNorm{
    .name = "batchnorm",
    .infer = infer,
    .gradient = gradient,
    .cost =
        [](const OpSignature& s) {
          return Cost{.flops = 6 * static_cast<double>(s.inputs[0].elements()),
                      .bytes = bytes_touched(s)};
        },
    .in_place = {{0, 0}, {4, 0}},
};
DDP_REGISTER_OP(kBatchNorm);

const OpDefinition kBatchNormBackward{
    .name = "batchnorm_backward",
    .infer =
        [](const OpSignature& s) {
          const TensorType& x = s.inputs[1];
          const std::int64_t channels = check_channels(s, x, 2, 3);
          check_sample_weights(s.inputs[5], x);
          const TensorType per_channel{Shape{channels}, master_dtype(x.dtype)};
          std::vector<TensorType> outputs{x, per_channel, per_channel};
          if (flag(s.attributes, "residual")) outputs.push_back(x);
          return outputs;
        },
    .cost =
        [](const OpSignature& s) {
          return Cost{.flops = 9 * static_cast<double>(s.inputs[1].elements()),
                      .bytes = bytes_touched(s)};
        },
    // x dies here, dy may live on as the gradient of a residual branch.
    .in_place = {{1, 0}, {0, 0}, {0, 3}},
};
DDP_REGISTER_OP(kBatchNormBackward);

const OpDefinition kBatchNormInference{
    .name = "batchnorm_inference",
    .infer =
        [](const OpSignature& s) {
          check_channels(s, s.inputs[0], 1, 4);
          check_addend(s, 5);
          return std::vector<TensorType>{s.inputs[0]};
        },
    .cost =
        [](const OpSignature& s) {
          return Cost{.flops = 2 * static_cast<double>(s.inputs[0].elements()),
                      .bytes = bytes_touched(s)};
        },
    .in_place = {{0, 0}, {5, 0}},
};
DDP_REGISTER_OP(kBatchNormInference);

const OpDefinition kRunningAverage{
    .name = "running_average",
    .infer = [](const OpSignature&) { return std::vector<TensorType>{}; },
    .cost =
        [](const OpSignature& s) {
          const auto elements = static_cast<double>(s.outputs[0].elements());
          return Cost{.flops = 4 * elements,
                      .bytes = bytes_touched(s) + static_cast<double>(s.outputs[0].bytes())};
        },
    .has_side_effect = true,
};
DDP_REGISTER_OP(kRunningAverage);

void check(const BatchNorm& layer) {
  if (!(layer.eps >= 0 && std::isfinite(layer.eps)))
    throw ConfigError("the eps of batch norm is {}, it has to be a number from 0", layer.eps);
  if (!(layer.momentum >= 0 && layer.momentum <= 1))
    throw ConfigError("the momentum of batch norm is {}, legal are 0 to 1", layer.momentum);
}

/// Parameters of a layer, the same in training and evaluation graphs.
struct Scale {
  Value weight, bias;
};
Scale scale_of(Value x, const std::string& name) {
  const TensorType channels{Shape{x.shape()[-1]}, x.graph->master_dtype()};
  return {.weight = x.graph->parameter(name + ".weight", channels, {.kind = Init::Kind::kOne}),
          .bias = x.graph->parameter(name + ".bias", channels, {.kind = Init::Kind::kZero})};
}

}  // namespace

Value batchnorm(Value x, Value sample_weights, const BatchNorm& layer) {
  check(layer);
  const auto [weight, bias] = scale_of(x, layer.name);
  const std::vector<Value> outputs = x.graph->add_op(
      "batchnorm", layer.name, {x, weight, bias, sample_weights}, {{"eps", layer.eps}});
  x.graph->running_statistics(layer.name, x.shape()[-1], layer.momentum).contribution =
      outputs[3].id;
  return outputs[0];
}

Value batchnorm_inference(Value x, const BatchNorm& layer) {
  check(layer);
  Graph& graph = *x.graph;
  const auto [weight, bias] = scale_of(x, layer.name);
  const RunningStatistics& running =
      graph.running_statistics(layer.name, x.shape()[-1], layer.momentum);
  const Value mean{&graph, running.mean}, variance{&graph, running.variance};
  return graph.add("batchnorm_inference", layer.name, {x, weight, bias, mean, variance},
                   {{"eps", layer.eps}});
}

Attributes running_average_attributes(const std::vector<RunningAverageSegment>& segments) {
  std::vector<double> flat;
  for (const RunningAverageSegment& segment : segments)
    flat.insert(flat.end(), {static_cast<double>(segment.offset),
                             static_cast<double>(segment.channels), segment.momentum});
  return {{"segments", flat}};
}

}  // namespace ddp
