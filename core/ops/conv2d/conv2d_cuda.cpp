// Each convolution runs on cuDNN where that has an engine of the precision asked for, otherwise by
// the formula. Bias and relu are fused where cuDNN can.
#include "core/backend/cuda/device.h"
#include "core/ops/bias/add_bias_cuda.h"
#include "core/ops/conv2d/conv2d.h"
#include "core/ops/conv2d/cudnn_graph_cuda.h"
#include "core/ops/conv2d/direct_cuda.h"
#include "core/ops/flag_attribute.h"

namespace ddp {
namespace {

using Planned = std::shared_ptr<const CudnnConvolution>;

Kernel kernel_of(const Planned& convolution) {
  return {.run = [convolution](const KernelArgs& args) { convolution->run(args); },
          .workspace_bytes = convolution->workspace_bytes(),
          .algorithm = convolution->algorithm()};
}

/// The kernel that stands in for cuDNN; the printed plan tells why.
Kernel instead(Kernel direct, const std::string& reason) {
  direct.algorithm = fmt::format("direct (cuDNN: {})", reason.substr(0, reason.find('\n')));
  return direct;
}

Kernel conv2d_factory(const OpSignature& s, const KernelContext& context) {
  const DType dtype = s.inputs[0].dtype;
  const Conv2dGeometry g = conv2d_geometry(s.inputs[0].shape, s.inputs[1].shape, s.attributes);
  const bool bias = s.inputs.size() > 2, relu = flag(s.attributes, "relu");
  std::string reason;
  Convolution convolution{.geometry = g, .dtype = dtype, .bias = bias, .relu = relu};
  if (const Planned fused = cudnn_convolution(convolution, context, reason))
    return kernel_of(fused);
  convolution.bias = convolution.relu = false;
  if (bias || relu)
    if (const Planned plain = cudnn_convolution(convolution, context, reason))
      return {.run =
                  [plain, bias, relu](const KernelArgs& args) {
                    plain->run(args);
                    add_bias(args.outputs[0], bias ? args.inputs[2].data : nullptr, relu,
                             args.outputs[0], cuda::stream_of(args));
                  },
              .workspace_bytes = plain->workspace_bytes(),
              .algorithm = plain->algorithm() + " + epilogue"};
  return instead(direct_conv2d(g, dtype, bias, relu), reason);
}

Kernel conv2d_backward_data_factory(const OpSignature& s, const KernelContext& context) {
  const Conv2dGeometry g = conv2d_backward_data_geometry(s);
  const DType dtype = s.inputs[0].dtype;
  std::string reason;
  if (const Planned planned = cudnn_convolution(
          {.pass = ConvolutionPass::kBackwardData, .geometry = g, .dtype = dtype}, context, reason))
    return kernel_of(planned);
  return instead(direct_conv2d_backward_data(g, dtype), reason);
}

Kernel conv2d_backward_filter_factory(const OpSignature& s, const KernelContext& context) {
  const Conv2dGeometry g = conv2d_backward_filter_geometry(s);
  const DType dtype = s.inputs[0].dtype;
  std::string reason;
  if (const Planned planned = cudnn_convolution(
          {.pass = ConvolutionPass::kBackwardFilter, .geometry = g, .dtype = dtype}, context,
          reason))
    return kernel_of(planned);
  return instead(direct_conv2d_backward_filter(g, dtype), reason);
}

DDP_REGISTER_CUDA_KERNEL("conv2d", conv2d_factory);
DDP_REGISTER_CUDA_KERNEL("conv2d_backward_data", conv2d_backward_data_factory);
DDP_REGISTER_CUDA_KERNEL("conv2d_backward_filter", conv2d_backward_filter_factory);

}  // namespace
}  // namespace ddp
