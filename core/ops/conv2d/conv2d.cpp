#include "core/ops/conv2d/conv2d.h"

#include <cmath>

#include "core/graph/differentiate.h"

namespace ddp {
namespace {

constexpr std::int64_t kMostPad = std::int64_t{1} << 20;  // beyond it extents could overflow

std::vector<TensorType> infer(const OpSignature& signature) {
  const TensorType& x = signature.inputs[0];
  const TensorType& filters = signature.inputs[1];
  if (x.shape.rank() != 4) throw ConfigError("a convolution needs images [N, H, W, C]");
  if (x.dtype != filters.dtype)
    throw ConfigError("images are {}, filters {}", name_of(x.dtype), name_of(filters.dtype));
  if (const std::int64_t pad = signature.attributes.integer("pad"); pad < 0 || pad > kMostPad)
    throw ConfigError("pad is {}, legal are 0..{}", pad, kMostPad);
  const Conv2dGeometry g = conv2d_geometry(x.shape, filters.shape, signature.attributes);
  if (g.k < 1 || g.r < 1 || g.stride < 1)
    throw ConfigError(
        "filters, kernel and stride have to be at least 1, but they are {}, {} and {}", g.k, g.r,
        g.stride);
  if (filters.shape[3] != g.c)
    throw ConfigError("images have {} channels, filters {}", g.c, filters.shape[3]);
  if (g.p < 1 || g.q < 1)
    throw ConfigError("the {}x{} kernel is larger than the image padded by {}", g.r, g.s, g.pad);
  if (signature.inputs.size() > 2 && signature.inputs[2] != TensorType{{g.k}, x.dtype})
    throw ConfigError("the bias has to be {} elements of {}", g.k, name_of(x.dtype));
  return {{{g.n, g.p, g.q, g.k}, x.dtype}};
}

void gradient(GradientBuilder& b, const OpRef& op) {
  DDP_CHECK(op.input_count() == 2, "convolution '{}' is fused before it is differentiated",
            op.name());
  const Value x = op.input(0), filters = op.input(1), dy = b.grad(op.output(0));
  if (b.wants(filters)) {
    Attributes attributes = op.attributes();
    attributes.set("kernel", filters.shape()[1]);
    b.give(filters, b.emit("conv2d_backward_filter", op, "backward_filter", {x, dy}, attributes));
  }
  if (b.wants(x)) {
    Attributes attributes = op.attributes();
    attributes.set("height", x.shape()[1]);
    attributes.set("width", x.shape()[2]);
    b.give(x, b.emit("conv2d_backward_data", op, "backward_data", {filters, dy}, attributes));
  }
}

Cost cost(const Conv2dGeometry& g, const OpSignature& signature) {
  return {.flops = 2.0 * static_cast<double>(g.n * g.p * g.q) *
                   static_cast<double>(g.k * g.r * g.s * g.c),
          .bytes = bytes_touched(signature)};
}

const OpDefinition kConv2d{
    .name = "conv2d",
    .infer = infer,
    .gradient = gradient,
    .cost =
        [](const OpSignature& s) {
          return cost(conv2d_geometry(s.inputs[0].shape, s.inputs[1].shape, s.attributes), s);
        },
};
DDP_REGISTER_OP(kConv2d);

// Inputs: filters, dy. Attributes: those of conv2d, height and width of x.
const OpDefinition kConv2dBackwardData{
    .name = "conv2d_backward_data",
    .infer =
        [](const OpSignature& s) {
          const Conv2dGeometry g = conv2d_backward_data_geometry(s);
          return std::vector<TensorType>{{{g.n, g.h, g.w, g.c}, s.inputs[1].dtype}};
        },
    .cost = [](const OpSignature& s) { return cost(conv2d_backward_data_geometry(s), s); },
};
DDP_REGISTER_OP(kConv2dBackwardData);

// Inputs: x, dy. Attributes: those of conv2d, extent of the kernel.
const OpDefinition kConv2dBackwardFilter{
    .name = "conv2d_backward_filter",
    .infer =
        [](const OpSignature& s) {
          const Conv2dGeometry g = conv2d_backward_filter_geometry(s);
          return std::vector<TensorType>{{{g.k, g.r, g.s, g.c}, s.inputs[1].dtype}};
        },
    .cost = [](const OpSignature& s) { return cost(conv2d_backward_filter_geometry(s), s); },
};
DDP_REGISTER_OP(kConv2dBackwardFilter);

}  // namespace

Conv2dGeometry conv2d_geometry(const Shape& x, const Shape& filters, const Attributes& attributes) {
  const std::int64_t stride = attributes.integer("stride"), pad = attributes.integer("pad");
  const auto result = [&](std::int64_t extent, std::int64_t kernel) {
    const std::int64_t room = extent + 2 * pad - kernel;
    return room < 0 || stride < 1 ? 0 : room / stride + 1;
  };
  return {.n = x[0],
          .h = x[1],
          .w = x[2],
          .c = x[3],
          .k = filters[0],
          .r = filters[1],
          .s = filters[2],
          .p = result(x[1], filters[1]),
          .q = result(x[2], filters[2]),
          .stride = stride,
          .pad = pad};
}

Conv2dGeometry conv2d_backward_data_geometry(const OpSignature& signature) {
  const Attributes& attributes = signature.attributes;
  const Shape& filters = signature.inputs[0].shape;
  const Shape x{signature.inputs[1].shape[0], attributes.integer("height"),
                attributes.integer("width"), filters[3]};
  return conv2d_geometry(x, filters, attributes);
}

Conv2dGeometry conv2d_backward_filter_geometry(const OpSignature& signature) {
  const std::int64_t kernel = signature.attributes.integer("kernel");
  const Shape& x = signature.inputs[0].shape;
  return conv2d_geometry(x, {signature.inputs[1].shape[3], kernel, kernel, x[3]},
                         signature.attributes);
}

namespace {

Init filter_init(FilterInit init, std::int64_t filters, std::int64_t kernel,
                 std::int64_t channels) {
  const auto terms = static_cast<double>(kernel * kernel);
  switch (init) {
    case FilterInit::kUniformFanIn:
      return {.kind = Init::Kind::kUniform,
              .scale = 1 / std::sqrt(static_cast<double>(channels) * terms)};
    case FilterInit::kKaimingNormalFanOut:
      return {.kind = Init::Kind::kNormal,
              .scale = std::sqrt(2 / (static_cast<double>(filters) * terms))};
  }
  return {};
}

}  // namespace

Value conv2d(Value x, const Conv2d& layer) {
  const std::int64_t channels =
      x.shape().rank() == 4 ? x.shape()[3] : 1;  // infer reports another rank
  const std::int64_t r = layer.kernel;
  const Shape shape{layer.filters, r, r, channels};
  const Value filters = x.graph->parameter(
      layer.name + ".weight", shape, filter_init(layer.init, layer.filters, r, channels),
      {.view = shape, .order = {0, 3, 1, 2}, .file = {layer.filters, channels, r, r}});
  return x.graph->add("conv2d", layer.name, {x, filters},
                      {{"stride", layer.stride}, {"pad", layer.pad}});
}

}  // namespace ddp
