// y[n, oh, ow, c] = max over the window of x. The second output is the place of the maximum inside
// its window (row * kernel + column, one byte): a quarter of the memory of x or y, and all that
// backward needs.
#include "core/graph/differentiate.h"
#include "core/ops/op_name.h"
#include "core/ops/pool/pool.h"

namespace ddp {
namespace {

constexpr std::int64_t kMaxKernel = 16;  // places inside the window fit into one byte

std::vector<TensorType> infer(const OpSignature& signature) {
  const Shape pooled = pooled_shape("max pooling", signature);
  if (const std::int64_t kernel = signature.attributes.integer("kernel"); kernel > kMaxKernel)
    throw ConfigError("the kernel of max pooling is {}, legal are 1..{}", kernel, kMaxKernel);
  return {{pooled, signature.inputs[0].dtype}, {pooled, DType::kU8}};
}

void gradient(GradientBuilder& b, const OpRef& op) {
  b.give(op.input(0), b.emit("max_pool_backward", op, "backward",
                             {b.grad(op.output(0)), op.output(1)}, pool_backward_attributes(op)));
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
DDP_REGISTER_OP(kMaxPool);

// Inputs: dy, place of the maximum. Attributes: those of max_pool, height and width of x.
const OpDefinition kMaxPoolBackward{
    .name = "max_pool_backward",
    .infer = [](const OpSignature& s) { return std::vector<TensorType>{pool_image(s)}; },
    .cost =
        [](const OpSignature& s) {
          return Cost{.flops = static_cast<double>(s.inputs[0].elements()),
                      .bytes = bytes_touched(s)};
        },
};
DDP_REGISTER_OP(kMaxPoolBackward);

}  // namespace

Value max_pool(Value x, const PoolOptions& options) {
  return x.graph->add_op("max_pool", op_name(*x.graph, options.name, "pool"), {x},
                         pool_attributes(options))[0];
}

}  // namespace ddp
