#include "core/ops/matmul/matrix_product_cuda.h"

#include "core/ops/bias/add_bias_cuda.h"
#include "core/ops/matmul/cublaslt_cuda.h"
#include "core/ops/matmul/tiled_product_cuda.h"

#include "core/backend/cuda/device.h"

namespace ddp {
namespace {

/// `kernel` computes `part` of `whole`: does the rest in a second pass over the result.
Kernel completed(Kernel kernel, const MatrixProduct& part, const MatrixProduct& whole) {
  const bool bias = whole.bias && !part.bias, relu = whole.relu && !part.relu;
  if (!bias && !relu) return kernel;
  return {.run =
              [run = std::move(kernel.run), bias, relu](const KernelArgs& args) {
                run(args);
                add_bias(args.outputs[0], bias ? args.inputs[2].data : nullptr, relu,
                         args.outputs[0], cuda::stream_of(args));
              },
          .workspace_bytes = kernel.workspace_bytes,
          .algorithm = kernel.algorithm + " + epilogue"};
}

}  // namespace

Kernel matrix_product(const MatrixProduct& product, const KernelContext& context) {
  MatrixProduct part = product;
  while (true) {
    if (std::optional<Kernel> kernel = cublaslt_product(part, context))
      return completed(std::move(*kernel), part, product);
    if (part.relu)
      part.relu = false;
    else if (part.bias)
      part.bias = false;
    else
      return completed(tiled_product(part, context), part, product);
  }
}

}  // namespace ddp
