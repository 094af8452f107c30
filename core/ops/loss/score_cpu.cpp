#include <cmath>
#include <limits>

#include "core/graph/op_definition.h"

namespace ddp {
namespace {

/// How many classes come before `label`: larger logits, and equal ones of a lower class. With a NaN
/// among the logits there is no order: the label comes after all.
template <class T>
std::int64_t rank_of_label(const T* x, std::int64_t classes, std::int64_t label) {
  std::int64_t before = 0;
  bool ordered = true;
  for (std::int64_t j = 0; j < classes; ++j) {
    before += x[j] > x[label] || (x[j] == x[label] && j < label);
    ordered &= x[j] == x[j];
  }
  return ordered ? before : std::numeric_limits<std::int64_t>::max();
}

// One thread, in sample order: the sums are the same for any number of threads.
template <class T>
Kernel accumulate(const Shape& logits, bool exact) {
  return {.run = [samples = logits[0], classes = logits[1], exact](const KernelArgs& args) {
    const T* losses = args.inputs[0].as<T>();
    const T* x = args.inputs[1].as<T>();
    const std::int32_t* labels = args.inputs[2].as<std::int32_t>();
    const float* weights = args.inputs[3].as<float>();
    StepState& state = *args.state;
    for (std::int64_t i = 0; i < samples; ++i) {
      const double weight = static_cast<double>(weights[i]);
      if (weight == 0) continue;
      const double loss = static_cast<double>(losses[i]);
      state.loss_sum += exact ? std::nearbyint(loss * 0x1p28) * 0x1p-28 : loss;
      state.weight_sum += weight;
      state.nonfinite += std::isfinite(loss) ? 0 : 1;
      const std::int64_t rank = rank_of_label(x + i * classes, classes, labels[i]);
      state.correct_top1 += rank < 1 ? weight : 0;
      state.correct_top5 += rank < 5 ? weight : 0;
    }
  }};
}

Kernel score_factory(const OpSignature& s, const KernelContext&) {
  const bool exact = s.attributes.integer("exact") != 0;
  const TensorType& logits = s.inputs[1];
  return logits.dtype == DType::kF64 ? accumulate<double>(logits.shape, exact)
                                     : accumulate<float>(logits.shape, exact);
}
DDP_REGISTER_CPU_KERNEL("score", score_factory);

}  // namespace
}  // namespace ddp
