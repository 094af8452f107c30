// One pass over dy and x: a team writes dx of its rows and keeps the sums of dweight and dbias of
// its columns; a block adds those of its teams and leaves them as a strip, and a second kernel adds
// the strips in their order.
#include <algorithm>

#include "core/ops/packed.cuh"
#include "core/ops/resident_blocks.cuh"
#include "core/ops/row_team.cuh"

namespace ddp {
namespace {

using namespace cuda;

constexpr std::int64_t kRowsInFloat = 64;  // that a team adds in float

template <class T>
struct Tensors {
  const T *dy, *x;
  const float *weight, *means, *inverses;
  T* dx;
};

/// Of dweight and dbias, for the columns of one thread.
template <class Team>
struct Sums {
  float dweight[Team::kPacks][Team::kN] = {}, dbias[Team::kPacks][Team::kN] = {};
};

/// Rows that are not kept leave their sums in the strip of the block, element by element: each has
/// one thread.
__device__ void add_to_strip(double* strip, bool first, float term) {
  *strip = first ? term : *strip + term;
}

/// A row on all threads of its team. dx may lie over dy or x.
template <class T, class Team>
__device__ void backward_row(RowExtents e, std::int64_t row, const Tensors<T>& t, Sums<Team>& sums,
                             double* strip) {
  constexpr int kN = Team::kN;
  const std::int64_t begin = row * e.columns;
  const float mean = t.means[row], inverse = t.inverses[row];
  Packed<T, kN> dy[Team::kPacks], x[Team::kPacks];
  const auto read = [&](int i, std::int64_t column) {
    dy[i] = Packed<T, kN>(t.dy + begin + column);
    x[i] = Packed<T, kN>(t.x + begin + column);
  };
  // The product is rounded both times, so that a gradient that is the same in the whole row and its
  // mean cancel.
  const auto scaled = [&](int i, int j, float weight) { return __fmul_rn(dy[i][j], weight); };
  const auto normalized = [&](int i, int j) { return (x[i][j] - mean) * inverse; };

  double total = 0, weighted = 0;
  Team::for_each_pack(e.columns, [&](int i, std::int64_t column) {
    read(i, column);
    const auto weight = load<float, kN>(t.weight + column);
    float sum = 0, product = 0;
    for (int j = 0; j < kN; ++j) {
      const float g = scaled(i, j, weight.element[j]);
      sum += g;
      product += g * normalized(i, j);
    }
    total += sum;
    weighted += product;
  });
  const auto columns = static_cast<double>(e.columns);
  const auto mean_g = static_cast<float>(Team::sum(total) / columns);
  const auto slope = static_cast<float>(Team::sum(weighted) / columns);
  Team::for_each_pack(e.columns, [&](int i, std::int64_t column) {
    if constexpr (!Team::kIsKept) read(i, column);
    const auto weight = load<float, kN>(t.weight + column);
    Pack<T, kN> result;
    for (int j = 0; j < kN; ++j) {
      const float z = normalized(i, j);
      result.element[j] =
          from_float<T>(inverse * (scaled(i, j, weight.element[j]) - mean_g - z * slope));
      if constexpr (Team::kIsKept) {
        sums.dweight[i][j] += dy[i][j] * z;
        sums.dbias[i][j] += dy[i][j];
      } else {
        const bool first = row == Team::first_row();
        add_to_strip(strip + column + j, first, dy[i][j] * z);
        add_to_strip(strip + e.columns + column + j, first, dy[i][j]);
      }
    }
    store(t.dx + begin + column, result);
  });
}

/// strips[block] = sums of dweight and of dbias over the rows of the block.
template <class T, class Team>
__global__ void __launch_bounds__(Team::kThreads)
    backward_kernel(RowExtents e, Tensors<T> tensors, double* strips) {
  constexpr int kN = Team::kN;
  double* strip = strips + static_cast<std::int64_t>(blockIdx.x) * 2 * e.columns;
  Sums<Team> sums;
  for (std::int64_t row = Team::first_row(); row < e.rows; row += Team::row_stride())
    backward_row<T, Team>(e, row, tensors, sums, strip);
  if constexpr (Team::kIsKept) {
    // A pack of each thread at a time: [team, dweight or dbias, element, thread of the team].
    __shared__ float exchange[Team::kRows][2 * kN][Team::kTeamThreads];
    const int team = static_cast<int>(threadIdx.x) / Team::kTeamThreads;
#pragma unroll
    for (int i = 0; i < Team::kPacks; ++i) {
      const std::int64_t begin = std::int64_t{i} * Team::kTeamThreads * kN;
      if (begin >= e.columns) break;
      for (int j = 0; j < kN; ++j) {
        exchange[team][j][Team::lane()] = sums.dweight[i][j];
        exchange[team][kN + j][Team::lane()] = sums.dbias[i][j];
      }
      __syncthreads();
      for (int k = static_cast<int>(threadIdx.x); k < 2 * kN * Team::kTeamThreads;
           k += Team::kThreads) {
        const int term = k / (kN * Team::kTeamThreads), at = k % (kN * Team::kTeamThreads);
        if (begin + at >= e.columns) continue;
        double sum = 0;
        for (int of = 0; of < Team::kRows; ++of) sum += exchange[of][term * kN + at % kN][at / kN];
        strip[term * e.columns + begin + at] = sum;
      }
      __syncthreads();
    }
  }
}

/// A block adds the strips of kColumns columns.
constexpr unsigned kColumns = 32, kParts = 32;
__global__ void strips_kernel(std::int64_t columns, unsigned strips, const double* sums,
                              float* dweight, float* dbias) {
  __shared__ double parts[kParts][kColumns];
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  double sum = 0;
  if (column < 2 * columns) {
#pragma unroll 4
    for (unsigned strip = threadIdx.y; strip < strips; strip += kParts)
      sum += sums[strip * 2 * columns + column];
  }
  parts[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= 2 * columns) return;
  for (unsigned part = 1; part < kParts; ++part) sum += parts[part][threadIdx.x];
  (column < columns ? dweight + column : dbias + (column - columns))[0] = static_cast<float>(sum);
}

template <class T, class Team>
Kernel backward(RowExtents e, const Device& gpu) {
  const auto blocks_of = [&](std::int64_t rows) {  // with that many rows for each team
    return (e.rows + Team::kRows * rows - 1) / (Team::kRows * rows);
  };
  const std::int64_t resident = resident_blocks(gpu, backward_kernel<T, Team>, Team::kThreads);
  const auto strips = static_cast<unsigned>(
      std::max(std::min(resident, blocks_of(1)), Team::kIsKept ? blocks_of(kRowsInFloat) : 1));
  const auto run = [=](const KernelArgs& args) {
    auto* sums = reinterpret_cast<double*>(args.workspace.data());
    const Tensors<T> tensors{.dy = args.inputs[0].as<T>(),
                             .x = args.inputs[1].as<T>(),
                             .weight = args.inputs[2].as<float>(),
                             .means = args.inputs[3].as<float>(),
                             .inverses = args.inputs[4].as<float>(),
                             .dx = args.outputs[0].as<T>()};
    backward_kernel<T, Team><<<strips, Team::kThreads, 0, stream_of(args)>>>(e, tensors, sums);
    check_launch("layernorm_backward");
    strips_kernel<<<static_cast<unsigned>((2 * e.columns + kColumns - 1) / kColumns),
                    dim3(kColumns, kParts), 0, stream_of(args)>>>(
        e.columns, strips, sums, args.outputs[1].as<float>(), args.outputs[2].as<float>());
    check_launch("layernorm_backward of all strips");
  };
  return {.run = run,
          .workspace_bytes = static_cast<std::size_t>(2 * e.columns) * strips * sizeof(double),
          .algorithm = Team::name()};
}

Kernel layernorm_backward_factory(const OpSignature& s, const KernelContext& context) {
  const RowExtents e = row_extents(s.inputs[1]);
  return with_team(s.inputs[1].dtype, e.columns, [&](auto type, auto team) {
    return backward<decltype(type), decltype(team)>(e, *context.gpu);
  });
}
DDP_REGISTER_CUDA_KERNEL("layernorm_backward", layernorm_backward_factory);

}  // namespace
}  // namespace ddp
