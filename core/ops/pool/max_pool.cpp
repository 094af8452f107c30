// y[n, oh, ow, c] = max over the window of x. The second output is the place of the maximum inside
// its window (row * kernel + column, one byte): a quarter of the memory of x or y, and all that
// backward needs.
#include "core/graph/differentiate.h"
#include "core/ops/pool/pool.h"

namespace ddp {
namespace {

constexpr std::int64_t kMaxKernel = 16;  // places inside the window fit into one byte

std::vector<TensorType> infer(const OpSignature& signature) {
  const TensorType& x = signature.inputs[0];
  if (x.shape.rank() != 4) throw ConfigError("max pooling needs images [N, H, W, C]");
  const auto [n, h, w, c, oh, ow, kernel, stride, pad] =
      pool_geometry(x.shape, signature.attributes);
  if (kernel < 1 || kernel > kMaxKernel)
    throw ConfigError("the kernel of max pooling is {}, legal are 1..{}", kernel, kMaxKernel);
  if (stride < 1)
    throw ConfigError("the stride of max pooling is {}, it has to be at least 1", stride);
  if (pad < 0 || pad > kernel / 2)
    throw ConfigError("max pooling pads by {}, legal are 0..{} (half the kernel)", pad, kernel / 2);
  if (oh < 1 || ow < 1)
    throw ConfigError("the {}x{} window of max pooling is larger than the padded image", kernel,
                      kernel);
  const Shape pooled{n, oh, ow, c};
  return {{pooled, x.dtype}, {pooled, DType::kU8}};
}

void gradient(GradientBuilder& b, const OpRef& op) {
  Attributes attributes = op.attributes();
  attributes.set("height", op.input(0).shape()[1]);
  attributes.set("width", op.input(0).shape()[2]);
  b.give(op.input(0), b.emit("max_pool_backward", op, "backward",
                             {b.grad(op.output(0)), op.output(1)}, std::move(attributes)));
}

const OpDefinition kMaxPool{
    .name = "max_pool",
    .infer = infer,
    .gradient = gradient,
    .cost =
        [](const OpSignature& s) {
          const double window = static_cast<double>(s.attributes.integer("kernel")) *
                                static_cast<double>(s.attributes.integer("kernel"));
          return Cost{.flops = window * static_cast<double>(s.outputs[0].elements()),
                      .bytes = bytes_touched(s)};
        },
};

// Inputs: dy, place of the maximum. Attributes: those of max_pool, height and width of x.
const OpDefinition kMaxPoolBackward{
    .name = "max_pool_backward",
    .infer =
        [](const OpSignature& s) {
          const TensorType& dy = s.inputs[0];
          return std::vector<TensorType>{{{dy.shape[0], s.attributes.integer("height"),
                                           s.attributes.integer("width"), dy.shape[3]},
                                          dy.dtype}};
        },
    .cost =
        [](const OpSignature& s) {
          return Cost{.flops = static_cast<double>(s.inputs[0].elements()),
                      .bytes = bytes_touched(s)};
        },
};

}  // namespace

PoolGeometry pool_geometry(const Shape& image, const Attributes& attributes) {
  const std::int64_t kernel = attributes.integer("kernel");
  const std::int64_t stride = attributes.integer("stride");
  const std::int64_t pad = attributes.integer("pad");
  const auto pooled = [&](std::int64_t extent) {
    const std::int64_t room = extent + 2 * pad - kernel;
    return room < 0 || stride < 1 ? 0 : room / stride + 1;
  };
  return {image[0],         image[1], image[2], image[3], pooled(image[1]),
          pooled(image[2]), kernel,   stride,   pad};
}

DDP_REGISTER_OP(kMaxPool);
DDP_REGISTER_OP(kMaxPoolBackward);

Value max_pool(Value x, const MaxPoolOptions& options) {
  Graph& graph = *x.graph;
  const std::string name = options.name.empty() ? graph.unique_name("pool") : options.name;
  return graph.add_op(
      "max_pool", name, {x},
      {{"kernel", std::int64_t{options.kernel}},
       {"stride", std::int64_t{options.stride == 0 ? options.kernel : options.stride}},
       {"pad", std::int64_t{options.pad}}})[0];
}

}  // namespace ddp
