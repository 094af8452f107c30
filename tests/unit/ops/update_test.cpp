// sgd, lars, adamw and lion against their formulas, written per element in float64.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <gmock/gmock.h>

#include "core/ops/optimizer/optimizer.h"
#include "core/ops/optimizer/sum_of_squares.h"
#include "tests/support/gradcheck.h"
#include "tests/unit/ops/slab_op.h"

namespace ddp::test {
namespace {

constexpr std::size_t kElements = 53;
const std::vector<OptimizerSegment> kSegments{
    {.begin = 0, .end = 20, .weight_decay = 0.1},
    {.begin = 24, .end = 25, .weight_decay = 0, .lr_scale = 2, .adapt = false},
    {.begin = 25, .end = 50, .weight_decay = 0.01, .lr_scale = 0.5}};

bool is_padding(std::size_t element) {
  return std::ranges::none_of(kSegments, [&](const OptimizerSegment& segment) {
    return element >= segment.begin && element < segment.end;
  });
}

/// Random numbers, zero in the padding.
std::vector<double> random_slab(std::uint64_t seed) {
  std::vector<double> slab = random_numbers(kElements, -1, 1, seed);
  for (std::size_t i = 0; i < kElements; ++i)
    if (is_padding(i)) slab[i] = 0;
  return slab;
}

struct Element {
  double g = 0;  ///< clipped mean gradient
  double lr = 0, decay = 0;
  double t = 1;                                  ///< of the update, from 1
  double parameter_norm = 0, gradient_norm = 0;  ///< of its segment
  bool adapt = true;
};

struct Case {
  std::string_view op;
  Attributes attributes;
  std::size_t slabs;  ///< parameters and optimizer states
  /// One element's update; values are its parameter and its states.
  std::function<void(const Element& element, std::span<double> values)> reference;
};

Case sgd_case(const SgdOptions& options) {
  return {"sgd", sgd_attributes(options, kSegments), 2,
          [options](const Element& e, std::span<double> v) {
            const double d = e.g + e.decay * v[0];
            v[1] = e.t == 1 ? d
                            : options.momentum * v[1] +
                                  d;  // PyTorch starts the buffer with the first gradient
            v[0] -= e.lr * (options.nesterov ? d + options.momentum * v[1] : v[1]);
          }};
}

Case lars_case(const LarsOptions& options) {
  return {"lars", lars_attributes(options, kSegments), 2,
          [options](const Element& e, std::span<double> v) {
            const double rate = e.adapt ? options.trust * e.parameter_norm /
                                              (e.gradient_norm + e.decay * e.parameter_norm)
                                        : 1;
            v[1] = options.momentum * v[1] + rate * (e.g + e.decay * v[0]);
            v[0] -= e.lr * v[1];
          }};
}

Case adamw_case(const AdamWOptions& options) {
  return {"adamw", adamw_attributes(options, kSegments), 3,
          [options](const Element& e, std::span<double> v) {
            v[0] *= 1 - e.lr * e.decay;
            v[1] = options.beta1 * v[1] + (1 - options.beta1) * e.g;
            v[2] = options.beta2 * v[2] + (1 - options.beta2) * e.g * e.g;
            const double m = v[1] / (1 - std::pow(options.beta1, e.t)),
                         s = v[2] / (1 - std::pow(options.beta2, e.t));
            v[0] -= e.lr * m / (std::sqrt(s) + options.eps);
          }};
}

Case lion_case(const LionOptions& options) {
  return {"lion", lion_attributes(options, kSegments), 2,
          [options](const Element& e, std::span<double> v) {
            const double direction = options.beta1 * v[1] + (1 - options.beta1) * e.g;
            v[0] = (1 - e.lr * e.decay) * v[0] - e.lr * (direction > 0 ? 1 : -1);
            v[1] = options.beta2 * v[1] + (1 - options.beta2) * e.g;
          }};
}

std::vector<Case> cases() {
  return {sgd_case({}),
          sgd_case({.momentum = 0.9}),
          sgd_case({.momentum = 0.9, .nesterov = true}),
          lars_case({}),
          lars_case({.momentum = 0.5, .trust = 0.1}),
          adamw_case({}),
          adamw_case({.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3}),
          lion_case({}),
          lion_case({.beta1 = 0.8, .beta2 = 0.95})};
}

Slabs initial_slabs(const Case& test) {
  Slabs slabs(test.slabs, std::vector<double>(kElements, 0.0));
  slabs[0] = random_slab(1);
  return slabs;
}

double norm(const std::vector<double>& slab, const OptimizerSegment& segment) {
  double sum = 0;
  for (std::size_t i = segment.begin; i < segment.end; ++i) sum += slab[i] * slab[i];
  return std::sqrt(sum);
}

/// One step of the reference on all slabs; `gradient` is the clipped mean gradient.
void update(const Case& test, const std::vector<double>& gradient, double lr, double t,
            Slabs& slabs) {
  for (const OptimizerSegment& segment : kSegments) {
    Element element{.lr = lr * segment.lr_scale,
                    .decay = segment.weight_decay,
                    .t = t,
                    .parameter_norm = norm(slabs[0], segment),
                    .gradient_norm = norm(gradient, segment),
                    .adapt = segment.adapt};
    for (std::size_t i = segment.begin; i < segment.end; ++i) {
      element.g = gradient[i];
      std::vector<double> values;
      for (const std::vector<double>& slab : slabs) values.push_back(slab[i]);
      test.reference(element, values);
      for (std::size_t s = 0; s < slabs.size(); ++s) slabs[s][i] = values[s];
    }
  }
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
          std::vector<double> clipped = gradient;
          for (double& g : clipped) g *= 0.5;
          update(test, clipped, state.learning_rate, static_cast<double>(t), expected);
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
        EXPECT_EQ(slab[i] == 0, is_padding(i)) << test.op << " " << i;
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

TEST(Update, ChangesWithEveryNumberOfASegment) {
  const OptimizerSegment base{.begin = 0, .end = 8, .weight_decay = 0.1};
  const std::vector<double> gradient = random_numbers(8, -1, 1, 3);
  const auto lars = [&](const OptimizerSegment& segment) {
    Slabs slabs{random_numbers(8, -1, 1, 4), std::vector<double>(8, 0.0)};
    StepState state{.gradient_scale = 1, .learning_rate = 0.1, .update = 1};
    run_slab_op("lars", lars_attributes({}, {segment}), {gradient}, slabs, state);
    return slabs;
  };
  for (const auto change :
       std::vector<void (*)(OptimizerSegment&)>{[](OptimizerSegment& s) { s.weight_decay = 0; },
                                                [](OptimizerSegment& s) { s.lr_scale = 0.5; },
                                                [](OptimizerSegment& s) { s.adapt = false; }}) {
    OptimizerSegment changed = base;
    change(changed);
    EXPECT_NE(lars(base), lars(changed));
  }
}

TEST(Lars, NormsDoNotDependOnTheNumberOfThreads) {
  const std::size_t n = 3 * kNormBlock + 17;
  const std::vector<OptimizerSegment> segments{{.begin = 0, .end = kNormBlock + 5},
                                               {.begin = kNormBlock + 64, .end = n}};
  const std::vector<double> gradient = random_numbers(n, -1, 1, 5);
  const auto run = [&](int threads) {
    Slabs slabs{random_numbers(n, -1, 1, 6), std::vector<double>(n, 0.0)};
    StepState state{.gradient_scale = 1, .learning_rate = 0.1, .update = 1};
    run_slab_op("lars", lars_attributes({}, segments), {gradient}, slabs, state, threads,
                DType::kF32);
    return slabs;
  };
  const Slabs reference = run(1);
  for (const int threads : {2, 3, 7}) EXPECT_EQ(run(threads), reference);
}

TEST(Lars, IsPlainMomentumWhereANormIsZero) {
  const std::vector<double> zeros(8, 0.0), numbers = random_numbers(8, -1, 1, 7);
  for (const auto& [parameter, gradient] : {std::pair{zeros, numbers}, std::pair{numbers, zeros}}) {
    for (const double decay : {0.0, 0.1}) {
      const std::vector<OptimizerSegment> segments{{.begin = 0, .end = 8, .weight_decay = decay}};
      StepState state{.gradient_scale = 1, .learning_rate = 0.1, .update = 1};
      Slabs lars{parameter, zeros}, sgd = lars;
      run_slab_op("lars", lars_attributes({.momentum = 0.9}, segments), {gradient}, lars, state);
      run_slab_op("sgd", sgd_attributes({.momentum = 0.9}, segments), {gradient}, sgd, state);
      EXPECT_EQ(lars, sgd) << "weight decay " << decay;
    }
  }
}

TEST(Lion, LeavesAParameterAloneThatNeverHadAGradient) {
  Slabs slabs{random_numbers(8, -1, 1, 8), std::vector<double>(8, 0.0)};
  const Slabs before = slabs;
  StepState state{.gradient_scale = 1, .learning_rate = 0.1, .update = 1};
  run_slab_op("lion", lion_attributes({}, {{.begin = 0, .end = 8}}), {std::vector<double>(8, 0.0)},
              slabs, state);
  EXPECT_EQ(slabs, before);
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
