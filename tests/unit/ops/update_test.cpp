// sgd and adamw against their formulas, written per element in float64.
#include <cmath>
#include <functional>
#include <limits>

#include <gmock/gmock.h>

#include "core/ops/optimizer/optimizer.h"
#include "tests/support/gradcheck.h"
#include "tests/unit/ops/slab_op.h"

namespace ddp::test {
namespace {

constexpr std::size_t kElements = 53;
const std::vector<OptimizerSegment> kSegments{{.begin = 0, .end = 20, .weight_decay = 0.1},
                                              {.begin = 24, .end = 25, .weight_decay = 0},
                                              {.begin = 25, .end = 50, .weight_decay = 0.01}};

double decay_of(std::size_t element) {
  for (const OptimizerSegment& segment : kSegments)
    if (element >= segment.begin && element < segment.end) return segment.weight_decay;
  return -1;  // padding
}

/// Random numbers, zero in the padding.
std::vector<double> random_slab(std::uint64_t seed) {
  std::vector<double> slab = random_numbers(kElements, -1, 1, seed);
  for (std::size_t i = 0; i < kElements; ++i)
    if (decay_of(i) < 0) slab[i] = 0;
  return slab;
}

struct Case {
  std::string_view op;
  Attributes attributes;
  std::size_t slabs;  ///< parameters and optimizer states
  /// One element's update: g is the clipped mean gradient, values its parameter and states, t
  /// counts from 1.
  std::function<void(double g, double lr, double decay, double t, std::span<double> values)>
      reference;
};

Case sgd_case(const SgdOptions& options) {
  return {"sgd", sgd_attributes(options, kSegments), 2,
          [options](double g, double lr, double decay, double t, std::span<double> v) {
            const double d = g + decay * v[0];
            v[1] = t == 1 ? d
                          : options.momentum * v[1] +
                                d;  // PyTorch starts the buffer with the first gradient
            v[0] -= lr * (options.nesterov ? d + options.momentum * v[1] : v[1]);
          }};
}

Case adamw_case(const AdamWOptions& options) {
  return {"adamw", adamw_attributes(options, kSegments), 3,
          [options](double g, double lr, double decay, double t, std::span<double> v) {
            v[0] *= 1 - lr * decay;
            v[1] = options.beta1 * v[1] + (1 - options.beta1) * g;
            v[2] = options.beta2 * v[2] + (1 - options.beta2) * g * g;
            const double m = v[1] / (1 - std::pow(options.beta1, t)),
                         s = v[2] / (1 - std::pow(options.beta2, t));
            v[0] -= lr * m / (std::sqrt(s) + options.eps);
          }};
}

std::vector<Case> cases() {
  return {sgd_case({}), sgd_case({.momentum = 0.9}), sgd_case({.momentum = 0.9, .nesterov = true}),
          adamw_case({}), adamw_case({.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3})};
}

Slabs initial_slabs(const Case& test) {
  Slabs slabs(test.slabs, std::vector<double>(kElements, 0.0));
  slabs[0] = random_slab(1);
  return slabs;
}

TEST(Update, FollowsItsFormulaOverSeveralSteps) {
  for (const Case& test : cases())
    for (const auto& [dtype, epsilon] :
         {std::pair<DType, double>{DType::kF64, std::numeric_limits<double>::epsilon()},
          std::pair<DType, double>{DType::kF32, std::numeric_limits<float>::epsilon()}})
      for (const int threads : {1, 2, 3}) {
        SCOPED_TRACE(fmt::format("{} {}", test.op, test.attributes.to_string()));
        Slabs slabs = initial_slabs(test), expected = slabs;
        StepState state;
        for (std::uint64_t t = 1; t <= 6; ++t) {
          const std::vector<double> gradient = random_slab(10 + t);
          state.update = t;
          state.learning_rate = 0.1 / static_cast<double>(t);
          state.gradient_scale = 0.5;
          run_slab_op(test.op, test.attributes, {gradient}, slabs, state, threads, dtype);
          for (std::size_t i = 0; i < kElements; ++i) {
            if (decay_of(i) < 0) continue;
            std::vector<double> values;
            for (const std::vector<double>& slab : expected) values.push_back(slab[i]);
            test.reference(0.5 * gradient[i], state.learning_rate, decay_of(i),
                           static_cast<double>(t), values);
            for (std::size_t s = 0; s < expected.size(); ++s) expected[s][i] = values[s];
          }
        }
        // Six steps of about ten roundings each, amplified by bias correction (1 - beta loses
        // digits in float).
        for (std::size_t s = 0; s < slabs.size(); ++s)
          expect_close(slabs[s], expected[s], 100 * epsilon, fmt::format("slab {}", s));
      }
}

TEST(Update, LeavesPaddingAlone) {
  for (const Case& test : cases()) {
    Slabs slabs = initial_slabs(test);
    StepState state{.gradient_scale = 1, .learning_rate = 0.1, .update = 1};
    run_slab_op(test.op, test.attributes, {std::vector<double>(kElements, 1.0)}, slabs, state);
    for (const std::vector<double>& slab : slabs)
      for (std::size_t i = 0; i < kElements; ++i)
        EXPECT_EQ(slab[i] == 0, decay_of(i) < 0) << test.op << " " << i;
  }
}

TEST(Update, SkippedStepChangesNothing) {
  for (const Case& test : cases()) {
    Slabs slabs = initial_slabs(test);
    const Slabs before = slabs;
    StepState state{.gradient_scale = std::nan(""), .learning_rate = 0.1, .skip = 1, .update = 1};
    run_slab_op(test.op, test.attributes, {random_slab(2)}, slabs, state);
    EXPECT_EQ(slabs, before) << test.op;
  }
}

TEST(Update, RefusesSlabsAndSegmentsThatDoNotFit) {
  StepState state;
  const std::vector<double> gradient(8, 0.0);
  const auto run = [&](const std::vector<OptimizerSegment>& segments, Slabs slabs) {
    run_slab_op("sgd", sgd_attributes({}, segments), {gradient}, slabs, state);
  };
  const Slabs fitting{gradient, gradient};
  EXPECT_NO_THROW(run({{.begin = 0, .end = 8}}, fitting));
  EXPECT_THROW(run({{.begin = 0, .end = 9}}, fitting), InternalError);
  EXPECT_THROW(run({{.begin = 0, .end = 5}, {.begin = 4, .end = 8}}, fitting), InternalError);
  EXPECT_THROW(run({{.begin = 5, .end = 4}}, fitting), InternalError);
  EXPECT_THROW(run({}, {gradient}), InternalError);
  EXPECT_THROW(run({}, {gradient, std::vector<double>(7, 0.0)}), InternalError);
}

}  // namespace
}  // namespace ddp::test
