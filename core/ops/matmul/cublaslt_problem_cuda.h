// A matrix product in the terms of cuBLASLt: the descriptors of the operation and its matrices, the
// algorithms that the library proposes, and the call itself.
#pragma once

#include <vector>

#include "core/backend/cuda/device.h"
#include "core/ops/matmul/matrix_product_cuda.h"

namespace ddp {

/// The handle of the context's device must outlive it. Not for several threads at once.
class CublasLtProblem {
 public:
  /// An algorithm and the workspace that it needs.
  using Candidate = cublasLtMatmulHeuristicResult_t;
  struct Operands {
    const void *a, *b, *bias;  ///< bias only where the product has one
    void* c;
  };

  CublasLtProblem(const MatrixProduct& product, const KernelContext& context);

  /// Best guess first, at most eight; none when the library cannot compute it. In all of them the
  /// parts of a split sum stay float and are added in a fixed order.
  std::vector<Candidate> candidates() const;
  /// `workspace` must be as large as the candidate asks for.
  cublasStatus_t enqueue(const Operands& operands, const Candidate& candidate, void* workspace,
                         cudaStream_t stream) const;

  const MatrixProduct& product() const { return product_; }

 private:
  using Descriptor = cuda::Owner<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
  using Layout = cuda::Owner<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

  MatrixProduct product_;
  cublasLtHandle_t handle_;
  Descriptor descriptor_;
  Layout a_, b_, c_;
};

}  // namespace ddp
