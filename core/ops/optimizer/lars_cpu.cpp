#include "core/ops/optimizer/lars_update.h"
#include "core/ops/optimizer/options.h"
#include "core/ops/optimizer/sum_of_squares.h"
#include "core/ops/optimizer/update_cpu.h"

namespace ddp {
namespace {

struct Lars {
  LarsOptions options;
  std::vector<OptimizerSegment> segments;
  std::vector<SegmentPart> parts;

  std::size_t workspace_bytes() const {
    return (parts.size() + segments.size()) * sizeof(SquareSums);
  }
};

/// Sums of each segment, in the workspace.
template <class T>
const SquareSums* sum_squares(const Lars& lars, const KernelArgs& args, int threads) {
  const T* gradient = args.inputs[0].as<T>();
  const T* parameter = args.outputs[0].as<T>();
  auto* partial = reinterpret_cast<SquareSums*>(args.workspace.data());
  SquareSums* squares = partial + lars.parts.size();
  cpu::parallel_for(threads, static_cast<std::int64_t>(lars.parts.size()),
                    [&](std::int64_t begin, std::int64_t end, int) {
                      for (std::int64_t i = begin; i < end; ++i) {
                        const SegmentPart& part = lars.parts[static_cast<std::size_t>(i)];
                        partial[i] = {
                            .parameter = sum_of_squares(parameter + part.begin, part.elements),
                            .gradient = sum_of_squares(gradient + part.begin, part.elements)};
                      }
                    });
  std::fill_n(squares, lars.segments.size(), SquareSums{});
  for (std::size_t i = 0; i < lars.parts.size(); ++i) {
    squares[lars.parts[i].segment].parameter += partial[i].parameter;
    squares[lars.parts[i].segment].gradient += partial[i].gradient;
  }
  return squares;
}

template <class T>
Kernel lars_kernel(Lars lars, int threads) {
  const std::size_t workspace = lars.workspace_bytes();
  return {.run =
              [lars = std::move(lars), threads](const KernelArgs& args) {
                if (args.state->skip != 0) return;
                const LarsInputs inputs{.options = lars.options,
                                        .segments = lars.segments.data(),
                                        .squares = sum_squares<T>(lars, args, threads)};
                take_step<T>(LarsStep::of(inputs, *args.state), lars.segments, args, threads);
              },
          .workspace_bytes = workspace};
}

Kernel lars_factory(const OpSignature& s, const KernelContext& context) {
  check_slabs(s, LarsStep::kSlabs);
  Lars lars{.options = lars_options(s.attributes),
            .segments = segments_from(s.attributes, s.inputs[0].elements()),
            .parts = {}};
  lars.parts = parts_of(lars.segments, kNormBlock);
  return s.inputs[0].dtype == DType::kF64 ? lars_kernel<double>(std::move(lars), context.threads)
                                          : lars_kernel<float>(std::move(lars), context.threads);
}
DDP_REGISTER_CPU_KERNEL("lars", lars_factory);

}  // namespace
}  // namespace ddp
