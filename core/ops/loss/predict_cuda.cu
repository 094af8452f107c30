#include <limits>

#include "core/ops/loss/loss.h"
#include "core/ops/packed.cuh"
#include "core/ops/row_team.cuh"

namespace ddp {
namespace {

using namespace cuda;

/// A key that is larger for a larger logit, and of equal logits for the lower class: the bits of a
/// float in the order of their values, above the complement of the class. That of NaN is the
/// largest of all and gives kNoPrediction.
__device__ std::uint64_t key_of(float logit, std::int64_t of_class) {
  if (isnan(logit)) return std::numeric_limits<std::uint64_t>::max();
  const std::uint32_t bits = __float_as_uint(logit == 0 ? 0.0F : logit);  // -0 equals 0
  const std::uint32_t ordered = (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
  return std::uint64_t{ordered} << 32 | (0xFFFFFFFFU - static_cast<std::uint32_t>(of_class));
}
__device__ std::int32_t class_of(std::uint64_t key) {
  static_assert(kNoPrediction == -1);
  if (key == std::numeric_limits<std::uint64_t>::max()) return -1;
  return static_cast<std::int32_t>(0xFFFFFFFFU - static_cast<std::uint32_t>(key));
}

template <class T, class Team>
__global__ void __launch_bounds__(Team::kThreads)
    predict_kernel(RowExtents e, const T* logits, std::int32_t* predictions) {
  constexpr int kN = Team::kN;
  for (std::int64_t row = Team::first_row(); row < e.rows; row += Team::row_stride()) {
    const auto larger = [](std::uint64_t a, std::uint64_t b) { return a < b ? b : a; };
    std::uint64_t largest = 0;
    Team::for_each_pack(e.columns, [&](int, std::int64_t column) {
      const Packed<T, kN> pack(logits + row * e.columns + column);
      for (int j = 0; j < kN; ++j) largest = larger(largest, key_of(pack[j], column + j));
    });
    largest = Team::reduce(largest, larger);
    if (Team::lane() == 0) predictions[row] = class_of(largest);
  }
}

Kernel predict_factory(const OpSignature& s, const KernelContext& context) {
  const RowExtents e = row_extents(s.inputs[0]);
  return with_team(s.inputs[0].dtype, e.columns, [&](auto type, auto team) -> Kernel {
    using T = decltype(type);
    using Team = decltype(team);
    const int blocks = team_blocks<Team>(*context.gpu, e.rows);
    const auto run = [=](const KernelArgs& args) {
      predict_kernel<T, Team><<<blocks, Team::kThreads, 0, stream_of(args)>>>(
          e, args.inputs[0].as<T>(), args.outputs[0].as<std::int32_t>());
      check_launch("predict");
    };
    return {.run = run, .algorithm = Team::name()};
  });
}
DDP_REGISTER_CUDA_KERNEL("predict", predict_factory);

}  // namespace
}  // namespace ddp
