// Each product is split over the threads by columns of its result, so that every sum is taken by
// one thread.
#include "core/backend/cpu/gemm.h"
#include "core/backend/cpu/parallel.h"
#include "core/graph/op_definition.h"
#include "core/ops/flag_attribute.h"

namespace ddp {
namespace {

using namespace cpu;

struct Extents {
  std::int64_t samples, units, features;
};

template <class T>
void add_bias(std::int64_t rows, std::int64_t columns, const T* bias, bool relu, T* y,
              std::int64_t stride) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const T value = y[i * stride + j] + bias[j];
      y[i * stride + j] = relu && value < T{0} ? T{0} : value;
    }
}

template <class T>
Kernel forward(Extents e, bool relu, int threads) {
  return {.run =
              [=](const KernelArgs& args) {
                const T* x = args.inputs[0].as<T>();
                const T* w = args.inputs[1].as<T>();
                const T* bias = args.inputs.size() > 2 ? args.inputs[2].as<T>() : nullptr;
                T* y = args.outputs[0].as<T>();
                parallel_for(threads, e.units, [=](std::int64_t begin, std::int64_t end, int) {
                  gemm<T>(e.samples, end - begin, e.features, {x, e.features},
                          {w + begin * e.features, e.features, /*transposed=*/true}, T{0},
                          y + begin, e.units);
                  if (bias != nullptr)
                    add_bias(e.samples, end - begin, bias + begin, relu, y + begin, e.units);
                });
              },
          .algorithm = "blas"};
}

template <class T>
Kernel backward_data(Extents e, int threads) {
  return {.run =
              [=](const KernelArgs& args) {
                const T* w = args.inputs[0].as<T>();
                const T* dy = args.inputs[1].as<T>();
                T* dx = args.outputs[0].as<T>();
                parallel_for(threads, e.features, [=](std::int64_t begin, std::int64_t end, int) {
                  gemm<T>(e.samples, end - begin, e.units, {dy, e.units}, {w + begin, e.features},
                          T{0}, dx + begin, e.features);
                });
              },
          .algorithm = "blas"};
}

template <class T>
Kernel backward_weight(Extents e, int threads) {
  return {.run =
              [=](const KernelArgs& args) {
                const T* x = args.inputs[0].as<T>();
                const T* dy = args.inputs[1].as<T>();
                T* dw = args.outputs[0].as<T>();
                parallel_for(threads, e.features, [=](std::int64_t begin, std::int64_t end, int) {
                  gemm<T>(e.units, end - begin, e.samples, {dy, e.units, /*transposed=*/true},
                          {x + begin, e.features}, T{0}, dw + begin, e.features);
                });
              },
          .algorithm = "blas"};
}

Kernel linear_factory(const OpSignature& s, const KernelContext& context) {
  const Extents e{s.inputs[0].shape[0], s.inputs[1].shape[0], s.inputs[0].shape[1]};
  const bool relu = flag(s.attributes, "relu");
  return s.inputs[0].dtype == DType::kF64 ? forward<double>(e, relu, context.threads)
                                          : forward<float>(e, relu, context.threads);
}
DDP_REGISTER_CPU_KERNEL("linear", linear_factory);

Kernel linear_backward_data_factory(const OpSignature& s, const KernelContext& context) {
  const Extents e{s.inputs[1].shape[0], s.inputs[0].shape[0], s.inputs[0].shape[1]};
  return s.inputs[0].dtype == DType::kF64 ? backward_data<double>(e, context.threads)
                                          : backward_data<float>(e, context.threads);
}
DDP_REGISTER_CPU_KERNEL("linear_backward_data", linear_backward_data_factory);

Kernel linear_backward_weight_factory(const OpSignature& s, const KernelContext& context) {
  const Extents e{s.inputs[0].shape[0], s.inputs[1].shape[1], s.inputs[0].shape[1]};
  return s.inputs[0].dtype == DType::kF64 ? backward_weight<double>(e, context.threads)
                                          : backward_weight<float>(e, context.threads);
}
DDP_REGISTER_CPU_KERNEL("linear_backward_weight", linear_backward_weight_factory);

}  // namespace
}  // namespace ddp
