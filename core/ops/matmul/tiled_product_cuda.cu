#include "core/ops/matmul/tiled_product_cuda.h"

#include "core/backend/cuda/kernel.cuh"

namespace ddp {
namespace {

constexpr int kTile = 16;  // rows and columns of the result that one block computes at a time

/// Element (i, j) of a matrix [rows, columns] after transposition, 0 outside of it.
template <class T>
__device__ float element(const T* matrix, bool transposed, std::int64_t rows, std::int64_t columns,
                         std::int64_t i, std::int64_t j) {
  if (i >= rows || j >= columns) return 0.0F;
  return cuda::to_float(matrix[transposed ? j * rows + i : i * columns + j]);
}

template <class T>
__global__ void __launch_bounds__(kTile* kTile)
    tiled_product_kernel(MatrixProduct p, const T* a, const T* b, T* c) {
  __shared__ float a_tile[kTile][kTile + 1];
  __shared__ float b_tile[kTile][kTile + 1];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const std::int64_t tiles_across = (p.columns + kTile - 1) / kTile;
  const std::int64_t tiles_of_one = tiles_across * ((p.rows + kTile - 1) / kTile);
  for (std::int64_t tile = blockIdx.x; tile < tiles_of_one * p.matrices; tile += gridDim.x) {
    const std::int64_t matrix = tile / tiles_of_one, at = tile % tiles_of_one;
    const std::int64_t row = at / tiles_across * kTile + y, column = at % tiles_across * kTile + x;
    const T* a_matrix = a + matrix * p.rows * p.terms;
    const T* b_matrix = b + matrix * p.terms * p.columns;
    float sum = 0.0F;
    for (std::int64_t k = 0; k < p.terms; k += kTile) {
      a_tile[y][x] = element(a_matrix, p.transpose_a, p.rows, p.terms, row, k + x);
      b_tile[y][x] = element(b_matrix, p.transpose_b, p.terms, p.columns, k + y, column);
      __syncthreads();
      for (int i = 0; i < kTile; ++i) sum += a_tile[y][i] * b_tile[i][x];
      __syncthreads();
    }
    if (row < p.rows && column < p.columns)
      c[(matrix * p.rows + row) * p.columns + column] = cuda::from_float<T>(sum);
  }
}

}  // namespace

Kernel tiled_product(const MatrixProduct& product, const KernelContext& context) {
  constexpr int kThreads = kTile * kTile;
  const std::int64_t tiles = product.matrices * ((product.rows + kTile - 1) / kTile) *
                             ((product.columns + kTile - 1) / kTile);
  const int blocks = cuda::grid_blocks(*context.gpu, tiles * kThreads, kThreads);
  return cuda::with_type(product.dtype, [&](auto type) -> Kernel {
    using T = decltype(type);
    return {.run =
                [product, blocks](const KernelArgs& args) {
                  tiled_product_kernel<T><<<blocks, dim3(kTile, kTile), 0, cuda::stream_of(args)>>>(
                      product, args.inputs[product.a].as<T>(), args.inputs[product.b].as<T>(),
                      args.outputs[0].as<T>());
                  cuda::check_launch("a matrix product");
                },
            .algorithm = "tiled"};
  });
}

}  // namespace ddp
