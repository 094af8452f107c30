// A team of threads has a row and keeps it in registers: memory is touched once. Rows that are too
// long for that are read again, from the cache.
#include <limits>

#include "core/ops/row_team.cuh"

namespace ddp {
namespace {

using namespace cuda;

template <class T, int N>
__device__ void read(const T* at, float (&values)[N]) {
  const auto pack = load<T, N>(at);
  for (int j = 0; j < N; ++j) values[j] = to_float(pack.element[j]);
}

// NaN is no candidate for the largest, but makes the sum NaN.
template <class T, class Team>
__global__ void __launch_bounds__(Team::kThreads) forward_kernel(RowExtents e, const T* x, T* y) {
  constexpr int kN = Team::kN;
  for (std::int64_t row = Team::first_row(); row < e.rows; row += Team::row_stride()) {
    const std::int64_t begin = row * e.columns;
    float values[Team::kPacks][kN];
    float largest = -std::numeric_limits<float>::infinity();
    Team::for_each_pack(e.columns, [&](int i, std::int64_t column) {
      read(x + begin + column, values[i]);
      for (int j = 0; j < kN; ++j) largest = fmaxf(largest, values[i][j]);
    });
    largest = Team::largest(largest);
    double total = 0;
    Team::for_each_pack(e.columns, [&](int i, std::int64_t column) {
      if constexpr (!Team::kIsKept) read(x + begin + column, values[i]);
      float sum = 0;
      for (int j = 0; j < kN; ++j) {
        values[i][j] = expf(values[i][j] - largest);
        sum += values[i][j];
      }
      total += sum;
    });
    const float scale = 1.0F / static_cast<float>(Team::sum(total));
    Team::for_each_pack(e.columns, [&](int i, std::int64_t column) {
      if constexpr (!Team::kIsKept) {
        read(x + begin + column, values[i]);
        for (int j = 0; j < kN; ++j) values[i][j] = expf(values[i][j] - largest);
      }
      Pack<T, kN> pack;
      for (int j = 0; j < kN; ++j) pack.element[j] = from_float<T>(values[i][j] * scale);
      store(y + begin + column, pack);
    });
  }
}

template <class T, class Team>
__global__ void __launch_bounds__(Team::kThreads)
    backward_kernel(RowExtents e, const T* dy, const T* y, T* dx) {
  constexpr int kN = Team::kN;
  for (std::int64_t row = Team::first_row(); row < e.rows; row += Team::row_stride()) {
    const std::int64_t begin = row * e.columns;
    float gradients[Team::kPacks][kN], outputs[Team::kPacks][kN];
    double total = 0;
    Team::for_each_pack(e.columns, [&](int i, std::int64_t column) {
      read(dy + begin + column, gradients[i]);
      read(y + begin + column, outputs[i]);
      float sum = 0;
      for (int j = 0; j < kN; ++j) sum += gradients[i][j] * outputs[i][j];
      total += sum;
    });
    const auto mean = static_cast<float>(Team::sum(total));
    Team::for_each_pack(e.columns, [&](int i, std::int64_t column) {
      if constexpr (!Team::kIsKept) {
        read(dy + begin + column, gradients[i]);
        read(y + begin + column, outputs[i]);
      }
      Pack<T, kN> pack;
      for (int j = 0; j < kN; ++j)
        pack.element[j] = from_float<T>(outputs[i][j] * (gradients[i][j] - mean));
      store(dx + begin + column, pack);
    });
  }
}

Kernel softmax_factory(const OpSignature& s, const KernelContext& context) {
  const RowExtents e = row_extents(s.inputs[0]);
  return with_team(s.inputs[0].dtype, e.columns, [&](auto type, auto team) -> Kernel {
    using T = decltype(type);
    using Team = decltype(team);
    const int blocks = team_blocks<Team>(*context.gpu, e.rows);
    const auto run = [=](const KernelArgs& args) {
      forward_kernel<T, Team><<<blocks, Team::kThreads, 0, stream_of(args)>>>(
          e, args.inputs[0].as<T>(), args.outputs[0].as<T>());
      check_launch("softmax");
    };
    return {.run = run, .algorithm = Team::name()};
  });
}

Kernel softmax_backward_factory(const OpSignature& s, const KernelContext& context) {
  const RowExtents e = row_extents(s.inputs[0]);
  return with_team(s.inputs[0].dtype, e.columns, [&](auto type, auto team) -> Kernel {
    using T = decltype(type);
    using Team = decltype(team);
    const int blocks = team_blocks<Team>(*context.gpu, e.rows);
    const auto run = [=](const KernelArgs& args) {
      backward_kernel<T, Team><<<blocks, Team::kThreads, 0, stream_of(args)>>>(
          e, args.inputs[0].as<T>(), args.inputs[1].as<T>(), args.outputs[0].as<T>());
      check_launch("softmax_backward");
    };
    return {.run = run, .algorithm = Team::name()};
  });
}
DDP_REGISTER_CUDA_KERNEL("softmax", softmax_factory);
DDP_REGISTER_CUDA_KERNEL("softmax_backward", softmax_backward_factory);

}  // namespace
}  // namespace ddp
