#include "core/ops/pool/pool.h"

namespace ddp {

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

Shape pooled_shape(std::string_view kind, const OpSignature& signature) {
  const Shape& image = signature.inputs[0].shape;
  if (image.rank() != 4) throw ConfigError("{} needs images [N, H, W, C]", kind);
  const PoolGeometry g = pool_geometry(image, signature.attributes);
  if (g.kernel < 1)
    throw ConfigError("the kernel of {} is {}, it has to be at least 1", kind, g.kernel);
  if (g.stride < 1)
    throw ConfigError("the stride of {} is {}, it has to be at least 1", kind, g.stride);
  if (g.pad < 0 || g.pad > g.kernel / 2)
    throw ConfigError("{} pads by {}, legal are 0..{} (half the kernel)", kind, g.pad,
                      g.kernel / 2);
  if (g.pooled_height < 1 || g.pooled_width < 1)
    throw ConfigError("the {}x{} window of {} is larger than the padded image", g.kernel, g.kernel,
                      kind);
  return {g.samples, g.pooled_height, g.pooled_width, g.channels};
}

Attributes pool_attributes(const PoolOptions& options) {
  return {{"kernel", std::int64_t{options.kernel}},
          {"stride", std::int64_t{options.stride == 0 ? options.kernel : options.stride}},
          {"pad", std::int64_t{options.pad}}};
}

Attributes pool_backward_attributes(const OpRef& op) {
  Attributes attributes = op.attributes();
  attributes.set("height", op.input(0).shape()[1]);
  attributes.set("width", op.input(0).shape()[2]);
  return attributes;
}

TensorType pool_image(const OpSignature& backward) {
  const TensorType& dy = backward.inputs[0];
  return {{dy.shape[0], backward.attributes.integer("height"), backward.attributes.integer("width"),
           dy.shape[3]},
          dy.dtype};
}

}  // namespace ddp
