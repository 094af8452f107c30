// Teams of threads find the rank of each label; then one block adds the micro-batch to StepState,
// each thread every kBlock-th sample, and the threads in a fixed order.
#include "core/ops/loss/loss.h"
#include "core/ops/packed.cuh"
#include "core/ops/row_team.cuh"

namespace ddp {
namespace {

using namespace cuda;

constexpr int kTop = 5;
constexpr int kBlock = 1024;

/// ranks[i] = classes that come before the label of sample i: larger logits, and equal ones of a
/// lower class. A NaN among the logits puts the label behind the top, wherever it stands.
template <class T, class Team>
__global__ void __launch_bounds__(Team::kThreads)
    rank_kernel(RowExtents e, const T* logits, const std::int32_t* labels, const float* weights,
                std::int64_t* ranks) {
  constexpr int kN = Team::kN;
  for (std::int64_t row = Team::first_row(); row < e.rows; row += Team::row_stride()) {
    if (weights[row] == 0) continue;  // nobody reads its rank
    const T* x = logits + row * e.columns;
    const std::int64_t label = labels[row];
    const float at_label = to_float(x[label]);
    std::int64_t before = 0;
    Team::for_each_pack(e.columns, [&](int, std::int64_t column) {
      const Packed<T, kN> pack(x + column);
      int found = 0;
      for (int j = 0; j < kN; ++j) {
        const float logit = pack[j];
        found += logit > at_label || (logit == at_label && column + j < label) ? 1 : 0;
        found += isnan(logit) ? kTop : 0;
      }
      before += found;
    });
    before = Team::sum(before);
    if (Team::lane() == 0) ranks[row] = before;
  }
}

struct Samples {
  std::int64_t count;
  bool exact;
  const float *losses, *weights;
  const std::int64_t* ranks;
};

__global__ void __launch_bounds__(kBlock) accumulate_kernel(Samples samples, StepState* state) {
  double loss_sum = 0, weight_sum = 0, correct_top1 = 0, correct_top5 = 0, nonfinite = 0;
  for (std::int64_t i = threadIdx.x; i < samples.count; i += kBlock) {
    const double weight = samples.weights[i];
    if (weight == 0) continue;
    const double loss = samples.losses[i];
    loss_sum += samples.exact ? rint(loss * 0x1p28) * 0x1p-28 : loss;
    weight_sum += weight;
    nonfinite += isfinite(loss) ? 0 : 1;
    const std::int64_t rank = samples.ranks[i];
    correct_top1 += rank < 1 ? weight : 0;
    correct_top5 += rank < kTop ? weight : 0;
  }
  loss_sum = block_sum(loss_sum);
  weight_sum = block_sum(weight_sum);
  correct_top1 = block_sum(correct_top1);
  correct_top5 = block_sum(correct_top5);
  nonfinite = block_sum(nonfinite);
  if (threadIdx.x != 0) return;
  state->loss_sum += loss_sum;
  state->weight_sum += weight_sum;
  state->correct_top1 += correct_top1;
  state->correct_top5 += correct_top5;
  state->nonfinite += nonfinite;
}

Kernel score_factory(const OpSignature& s, const KernelContext& context) {
  const bool exact = s.attributes.integer("exact") != 0;
  const RowExtents e = row_extents(s.inputs[1]);
  return with_team(s.inputs[1].dtype, e.columns, [&](auto type, auto team) -> Kernel {
    using T = decltype(type);
    using Team = decltype(team);
    const int blocks = team_blocks<Team>(*context.gpu, e.rows);
    const auto run = [=](const KernelArgs& args) {
      auto* ranks = reinterpret_cast<std::int64_t*>(args.workspace.data());
      const float* weights = args.inputs[3].as<float>();
      rank_kernel<T, Team><<<blocks, Team::kThreads, 0, stream_of(args)>>>(
          e, args.inputs[1].as<T>(), args.inputs[2].as<std::int32_t>(), weights, ranks);
      check_launch("ranks of score");
      accumulate_kernel<<<1, kBlock, 0, stream_of(args)>>>(
          {e.rows, exact, args.inputs[0].as<float>(), weights, ranks}, args.state);
      check_launch("score");
    };
    return {.run = run,
            .workspace_bytes = static_cast<std::size_t>(e.rows) * sizeof(std::int64_t),
            .algorithm = Team::name()};
  });
}
DDP_REGISTER_CUDA_KERNEL("score", score_factory);

}  // namespace
}  // namespace ddp
