#include <algorithm>
#include <cmath>

#include "core/backend/cpu/parallel.h"
#include "core/ops/optimizer/segments.h"
#include "core/ops/optimizer/sgd_update.h"
#include "core/ops/optimizer/sum_of_squares.h"

namespace ddp {
namespace {

/// Elements [begin, end) of one segment, whose squares make one partial sum.
struct NormBlock {
  std::size_t segment = 0;
  std::int64_t begin = 0, end = 0;
};

std::vector<NormBlock> norm_blocks_of(const std::vector<OptimizerSegment>& segments) {
  std::vector<NormBlock> blocks;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    if (!segments[s].adapt) continue;
    const auto end = static_cast<std::int64_t>(segments[s].end);
    for (auto begin = static_cast<std::int64_t>(segments[s].begin); begin < end;
         begin += kNormBlock)
      blocks.push_back({.segment = s, .begin = begin, .end = std::min(begin + kNormBlock, end)});
  }
  return blocks;
}

struct SquareSums {
  double parameter = 0, gradient = 0;
};

/// What lars multiplies the update of a segment by.
double local_rate(double trust, double weight_decay, double gradient_scale,
                  const SquareSums& squares) {
  const double parameter = std::sqrt(squares.parameter);
  const double gradient = std::sqrt(squares.gradient) * gradient_scale;
  const double denominator = gradient + weight_decay * parameter;
  return parameter > 0 && denominator > 0 ? trust * parameter / denominator : 1;
}

template <class T>
Kernel lars(std::int64_t elements, std::vector<OptimizerSegment> segments,
            const LarsOptions& options, int threads) {
  std::vector<NormBlock> blocks = norm_blocks_of(segments);
  const std::size_t workspace = (blocks.size() + segments.size()) * sizeof(SquareSums);
  auto run = [elements, segments = std::move(segments), blocks = std::move(blocks), options,
              threads](const KernelArgs& args) {
    const StepState& state = *args.state;
    if (state.skip != 0) return;
    const T* gradient = args.inputs[0].as<T>();
    T* parameter = args.outputs[0].as<T>();
    T* momentum = args.outputs[1].as<T>();

    auto* partial = reinterpret_cast<SquareSums*>(args.workspace.data());
    SquareSums* squares = partial + blocks.size();
    cpu::parallel_for(threads, static_cast<std::int64_t>(blocks.size()),
                      [&](std::int64_t begin, std::int64_t end, int) {
                        for (std::int64_t b = begin; b < end; ++b) {
                          const NormBlock& block = blocks[static_cast<std::size_t>(b)];
                          const std::int64_t n = block.end - block.begin;
                          partial[b] = {.parameter = sum_of_squares(parameter + block.begin, n),
                                        .gradient = sum_of_squares(gradient + block.begin, n)};
                        }
                      });
    std::fill_n(squares, segments.size(), SquareSums{});
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      squares[blocks[b].segment].parameter += partial[b].parameter;
      squares[blocks[b].segment].gradient += partial[b].gradient;
    }

    for_each_part(
        threads, elements, segments,
        [&](const OptimizerSegment& segment, std::int64_t from, std::int64_t to) {
          // Without adaptation the sums are 0, and so the rate is 1.
          const double rate = local_rate(options.trust, segment.weight_decay, state.gradient_scale,
                                         squares[&segment - segments.data()]);
          sgd_update(
              SgdFactors<T>{.scale = static_cast<T>(rate * state.gradient_scale),
                            .decay = static_cast<T>(rate * segment.weight_decay),
                            .momentum = static_cast<T>(options.momentum),
                            .of_gradient = 0,
                            .of_momentum = static_cast<T>(state.learning_rate * segment.lr_scale)},
              to - from, gradient + from, parameter + from, momentum + from);
        });
  };
  return {.run = std::move(run), .workspace_bytes = workspace};
}

Kernel lars_factory(const OpSignature& s, const KernelContext& context) {
  check_slabs(s, 2);
  const std::int64_t elements = s.inputs[0].elements();
  std::vector<OptimizerSegment> segments = segments_from(s.attributes, elements);
  const LarsOptions options{.momentum = s.attributes.real("momentum"),
                            .trust = s.attributes.real("trust")};
  return s.inputs[0].dtype == DType::kF64
             ? lars<double>(elements, std::move(segments), options, context.threads)
             : lars<float>(elements, std::move(segments), options, context.threads);
}
DDP_REGISTER_CPU_KERNEL("lars", lars_factory);

}  // namespace
}  // namespace ddp
