// Memory is read and written once: a row stays in the registers of its team. The variance is that
// of differences from the mean, so that a large mean does not eat it.
#include "core/ops/packed.cuh"
#include "core/ops/row_team.cuh"

namespace ddp {
namespace {

using namespace cuda;

struct Parameters {
  const float *weight, *bias;
};
struct Statistics {
  float *mean, *inverse;
};

/// y may lie over x.
template <class T, class Team>
__global__ void __launch_bounds__(Team::kThreads)
    forward_kernel(RowExtents e, double eps, const T* x, Parameters parameters, T* y,
                   Statistics statistics) {
  constexpr int kN = Team::kN;
  for (std::int64_t row = Team::first_row(); row < e.rows; row += Team::row_stride()) {
    const T* from = x + row * e.columns;
    Packed<T, kN> values[Team::kPacks];
    double total = 0;
    Team::for_each_pack(e.columns, [&](int i, std::int64_t column) {
      values[i] = Packed<T, kN>(from + column);
      float sum = 0;
      for (int j = 0; j < kN; ++j) sum += values[i][j];
      total += sum;
    });
    const auto mean = static_cast<float>(Team::sum(total) / static_cast<double>(e.columns));
    total = 0;
    Team::for_each_pack(e.columns, [&](int i, std::int64_t column) {
      if constexpr (!Team::kIsKept) values[i] = Packed<T, kN>(from + column);
      float sum = 0;
      for (int j = 0; j < kN; ++j) {
        const float difference = values[i][j] - mean;
        sum += difference * difference;
      }
      total += sum;
    });
    const double variance = Team::sum(total) / static_cast<double>(e.columns);
    const float inverse = rsqrtf(static_cast<float>(variance + eps));
    if (Team::lane() == 0) {
      statistics.mean[row] = mean;
      statistics.inverse[row] = inverse;
    }
    Team::for_each_pack(e.columns, [&](int i, std::int64_t column) {
      if constexpr (!Team::kIsKept) values[i] = Packed<T, kN>(from + column);
      const auto weight = load<float, kN>(parameters.weight + column);
      const auto bias = load<float, kN>(parameters.bias + column);
      Pack<T, kN> result;
      for (int j = 0; j < kN; ++j)
        result.element[j] =
            from_float<T>((values[i][j] - mean) * inverse * weight.element[j] + bias.element[j]);
      store(y + row * e.columns + column, result);
    });
  }
}

Kernel layernorm_factory(const OpSignature& s, const KernelContext& context) {
  const RowExtents e = row_extents(s.inputs[0]);
  const double eps = s.attributes.real("eps");
  return with_team(s.inputs[0].dtype, e.columns, [&](auto type, auto team) -> Kernel {
    using T = decltype(type);
    using Team = decltype(team);
    const int blocks = team_blocks<Team>(*context.gpu, e.rows);
    const auto run = [=](const KernelArgs& args) {
      forward_kernel<T, Team><<<blocks, Team::kThreads, 0, stream_of(args)>>>(
          e, eps, args.inputs[0].as<T>(), {args.inputs[1].as<float>(), args.inputs[2].as<float>()},
          args.outputs[0].as<T>(), {args.outputs[1].as<float>(), args.outputs[2].as<float>()});
      check_launch("layernorm");
    };
    return {.run = run, .algorithm = Team::name()};
  });
}
DDP_REGISTER_CUDA_KERNEL("layernorm", layernorm_factory);

}  // namespace
}  // namespace ddp
