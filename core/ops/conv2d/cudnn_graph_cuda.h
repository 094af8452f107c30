// Convolutions by cuDNN: the engine is chosen while the plan is built, by timing the candidates of
// cuDNN's heuristics on the device, or as the first of them where runs must repeat byte for byte.
// Only the source file behind this header sees cudnn-frontend, whose headers take long to compile.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/ops/conv2d/conv2d.h"

namespace ddp {

enum class ConvolutionPass : std::uint8_t { kForward, kBackwardData, kBackwardFilter };

struct Convolution {
  ConvolutionPass pass = ConvolutionPass::kForward;
  Conv2dGeometry geometry;
  DType dtype = DType::kF32;        ///< of all tensors, F32 or BF16; sums are float
  bool bias = false, relu = false;  ///< forward only; NaN passes relu
};

/// A convolution ready to run. Its device must outlive it.
class CudnnConvolution {
 public:
  virtual ~CudnnConvolution() = default;
  /// Enqueues it on the inputs of `args` in the order of the op, as many as the convolution has,
  /// and output 0. Throws DeviceError with cuDNN's message.
  virtual void run(const KernelArgs& args) const = 0;
  virtual std::size_t workspace_bytes() const = 0;
  /// "cudnn <engine and its knobs>; ws <bytes>"
  virtual std::string algorithm() const = 0;
};

/// Null when cuDNN has no engine that computes `convolution` as precisely as `context` asks for;
/// `reason` then says why. Equal convolutions of one device are tuned once in a process and share
/// what this returns. Throws MemoryError when the device cannot hold operands to tune on.
std::shared_ptr<const CudnnConvolution> cudnn_convolution(const Convolution& convolution,
                                                          const KernelContext& context,
                                                          std::string& reason);

}  // namespace ddp
