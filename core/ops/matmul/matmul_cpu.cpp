// The columns of all results are one range that is split over the threads: the same work for each,
// whatever the numbers of matrices and columns, and every sum is taken by one thread.
#include <algorithm>

#include "core/backend/cpu/gemm.h"
#include "core/backend/cpu/parallel.h"
#include "core/graph/op_definition.h"
#include "core/ops/flag_attribute.h"

namespace ddp {
namespace {

struct Extents {
  std::int64_t matrices, rows, columns, terms;  ///< terms: of each sum
  bool transpose_a, transpose_b;
};

/// Columns [begin, begin + count) of one product.
template <class T>
void multiply(const Extents& e, const T* a, const T* b, std::int64_t begin, std::int64_t count,
              T* c) {
  const std::int64_t a_stride = e.transpose_a ? e.rows : e.terms;
  const std::int64_t b_stride = e.transpose_b ? e.terms : e.columns;
  const T* b_columns = b + begin * (e.transpose_b ? b_stride : 1);
  cpu::gemm<T>(e.rows, count, e.terms, {a, a_stride, e.transpose_a},
               {b_columns, b_stride, e.transpose_b}, T{0}, c + begin, e.columns);
}

template <class T>
Kernel product(const Extents& e, int threads) {
  const auto run = [=](const KernelArgs& args) {
    const T* a = args.inputs[0].as<T>();
    const T* b = args.inputs[1].as<T>();
    T* c = args.outputs[0].as<T>();
    cpu::parallel_for(
        threads, e.matrices * e.columns, [=](std::int64_t begin, std::int64_t end, int) {
          while (begin < end) {
            const std::int64_t matrix = begin / e.columns, column = begin % e.columns;
            const std::int64_t count = std::min(e.columns - column, end - begin);
            multiply(e, a + matrix * e.rows * e.terms, b + matrix * e.terms * e.columns, column,
                     count, c + matrix * e.rows * e.columns);
            begin += count;
          }
        });
  };
  return {.run = run, .algorithm = "blas"};
}

Kernel matmul_factory(const OpSignature& s, const KernelContext& context) {
  const Shape& c = s.outputs[0].shape;
  const bool transpose_a = flag(s.attributes, "transpose_a");
  const Extents e{.matrices = c.elements() / (c[-2] * c[-1]),
                  .rows = c[-2],
                  .columns = c[-1],
                  .terms = s.inputs[0].shape[transpose_a ? -2 : -1],
                  .transpose_a = transpose_a,
                  .transpose_b = flag(s.attributes, "transpose_b")};
  return s.outputs[0].dtype == DType::kF64 ? product<double>(e, context.threads)
                                           : product<float>(e, context.threads);
}
DDP_REGISTER_CPU_KERNEL("matmul", matmul_factory);

}  // namespace
}  // namespace ddp
