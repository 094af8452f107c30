// cuBLASLt counts columns first: a row-major matrix is its transpose there. So it is asked for
// cᵀ = bᵀ aᵀ, with b as its first operand, and one bias for each row of its result.
#include "core/ops/matmul/cublaslt_problem_cuda.h"

#include <algorithm>
#include <array>

namespace ddp {
namespace {

using cuda::check;

using Layout = cuda::Owner<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = cuda::Owner<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

constexpr int kCandidates = 8;
/// More workspace gains little, and the arena would have to hold it.
constexpr std::size_t kMostWorkspace = std::min(cuda::kWorkspaceLimit, std::size_t{32} << 20);
/// What every tensor's address is a multiple of: 64 elements, parameters of BF16 in their slab.
constexpr std::int64_t kBaseAlignment = 128;

cudaDataType_t type_of(DType dtype) { return dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F; }

template <class T>
void set(cublasLtMatmulDesc_t descriptor, cublasLtMatmulDescAttributes_t attribute,
         const T& value) {
  check(cublasLtMatmulDescSetAttribute(descriptor, attribute, &value, sizeof(value)),
        "cublasLtMatmulDescSetAttribute");
}
template <class T>
void set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const T& value) {
  check(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof(value)),
        "cublasLtMatrixLayoutSetAttribute");
}
template <class T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
         const T& value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)),
        "cublasLtMatmulPreferenceSetAttribute");
}

/// A matrix as it is stored, [rows, columns] row-major; a batch of them is contiguous.
struct Stored {
  std::int64_t rows, columns;
  /// What the address of each row of each matrix is a multiple of, in bytes.
  std::uint32_t alignment(DType dtype) const {
    const std::int64_t row = columns * static_cast<std::int64_t>(size_of(dtype));
    return static_cast<std::uint32_t>(std::min(kBaseAlignment, row & -row));
  }
};
Stored stored_a(const MatrixProduct& p) {
  return p.transpose_a ? Stored{p.terms, p.rows} : Stored{p.rows, p.terms};
}
Stored stored_b(const MatrixProduct& p) {
  return p.transpose_b ? Stored{p.columns, p.terms} : Stored{p.terms, p.columns};
}
Stored stored_c(const MatrixProduct& p) { return {p.rows, p.columns}; }

Layout layout_of(const Stored& matrix, const MatrixProduct& p) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublasLtMatrixLayoutCreate(&layout, type_of(p.dtype),
                                   static_cast<std::uint64_t>(matrix.columns),
                                   static_cast<std::uint64_t>(matrix.rows), matrix.columns),
        "cublasLtMatrixLayoutCreate");
  Layout owner(layout);
  if (p.matrices > 1) {
    set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(p.matrices));
    set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, matrix.rows * matrix.columns);
  }
  return owner;
}

cublasLtEpilogue_t epilogue_of(const MatrixProduct& p) {
  if (p.bias) return p.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
  return p.relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
}

void set_bias(cublasLtMatmulDesc_t descriptor, const void* bias) {
  set(descriptor, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
}

}  // namespace

CublasLtProblem::CublasLtProblem(const MatrixProduct& p, const KernelContext& context)
    : product_(p),
      handle_(context.gpu->cublas()),
      a_(layout_of(stored_a(p), p)),
      b_(layout_of(stored_b(p), p)),
      c_(layout_of(stored_c(p), p)) {
  const bool tf32 = context.tf32 && p.dtype == DType::kF32;
  cublasLtMatmulDesc_t descriptor = nullptr;
  check(cublasLtMatmulDescCreate(
            &descriptor, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  descriptor_ = Descriptor(descriptor);
  set(descriptor, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(descriptor, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(descriptor, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p));
}

std::vector<CublasLtProblem::Candidate> CublasLtProblem::candidates() const {
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  const Preference owner(preference);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspace);
  // Without a bit for it, unsplit sums are always allowed.
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  const DType dtype = product_.dtype;
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, stored_b(product_).alignment(dtype));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, stored_a(product_).alignment(dtype));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, stored_c(product_).alignment(dtype));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, stored_c(product_).alignment(dtype));
  // The heuristic reads the alignment of the bias off its address.
  if (product_.bias) set_bias(descriptor_.get(), reinterpret_cast<const void*>(kBaseAlignment));

  std::array<Candidate, kCandidates> found{};
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle_, descriptor_.get(), b_.get(), a_.get(), c_.get(),
                                     c_.get(), preference, kCandidates, found.data(), &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return {};
  check(status, "cublasLtMatmulAlgoGetHeuristic");
  std::vector<Candidate> usable(found.begin(), found.begin() + count);
  std::erase_if(usable, [](const Candidate& c) { return c.state != CUBLAS_STATUS_SUCCESS; });
  return usable;
}

cublasStatus_t CublasLtProblem::enqueue(const Operands& operands, const Candidate& candidate,
                                        void* workspace, cudaStream_t stream) const {
  if (product_.bias) set_bias(descriptor_.get(), operands.bias);
  const float one = 1, zero = 0;
  return cublasLtMatmul(handle_, descriptor_.get(), &one, operands.b, b_.get(), operands.a,
                        a_.get(), &zero, operands.c, c_.get(), operands.c, c_.get(),
                        &candidate.algo, workspace, candidate.workspaceSize, stream);
}

}  // namespace ddp
