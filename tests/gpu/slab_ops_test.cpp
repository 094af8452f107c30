// The ops on slabs (commit, finish_step, updates, averages, cast) on the GPU in F32 against the CPU
// in float64, from the same numbers.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "core/ops/batchnorm/batchnorm.h"
#include "core/ops/cast/cast.h"
#include "core/ops/optimizer/optimizer.h"
#include "core/tensor/bfloat16.h"
#include "tests/gpu/gpu.h"
#include "tests/support/gradcheck.h"
#include "tests/unit/ops/slab_op.h"

namespace ddp::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kEpsilon = std::numeric_limits<float>::epsilon();
constexpr std::size_t kElements = 70003;
const std::vector<OptimizerSegment> kSegments{
    {.begin = 0, .end = 33001, .weight_decay = 0.1},
    {.begin = 33024, .end = 33025, .weight_decay = 0, .lr_scale = 2, .adapt = false},
    {.begin = 33025, .end = 70000, .weight_decay = 0.01, .lr_scale = 0.5}};

class OnGpu {
 public:
  explicit OnGpu(const std::vector<double>& elements, DType dtype = DType::kF32)
      : type_{{static_cast<std::int64_t>(elements.size())}, dtype},
        memory_(gpu().allocate(type_.bytes())) {
    std::vector<std::byte> bytes(type_.bytes());
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if (dtype == DType::kBF16)
        reinterpret_cast<BFloat16*>(bytes.data())[i] = BFloat16(elements[i]);
      else
        reinterpret_cast<float*>(bytes.data())[i] = static_cast<float>(elements[i]);
    }
    gpu().upload(memory_.data(), bytes.data(), bytes.size());
  }
  TensorView view() const { return {memory_.data(), type_}; }
  std::vector<double> get() const {
    std::vector<std::byte> bytes(type_.bytes());
    gpu().download(bytes.data(), memory_.data(), bytes.size());
    std::vector<double> elements(static_cast<std::size_t>(type_.elements()));
    for (std::size_t i = 0; i < elements.size(); ++i)
      elements[i] = type_.dtype == DType::kBF16
                        ? static_cast<double>(reinterpret_cast<BFloat16*>(bytes.data())[i])
                        : static_cast<double>(reinterpret_cast<float*>(bytes.data())[i]);
    return elements;
  }

 private:
  TensorType type_;
  Buffer memory_;
};

void run_on_gpu(std::string_view op, const Attributes& attributes, const std::vector<OnGpu>& inputs,
                const std::vector<OnGpu>& outputs, StepState& state) {
  OpSignature signature{.inputs = {}, .outputs = {}, .attributes = attributes};
  std::vector<TensorView> in, out;
  for (const OnGpu& tensor : inputs) in.push_back(tensor.view());
  for (const OnGpu& tensor : outputs) out.push_back(tensor.view());
  for (const TensorView& view : in) signature.inputs.push_back(view.type);
  for (const TensorView& view : out) signature.outputs.push_back(view.type);
  const Kernel kernel = kernel_factory(BackendKind::kCuda, op)(signature, gpu().kernel_context());
  const Buffer workspace = gpu().allocate(kernel.workspace_bytes + 1);
  const std::vector<std::byte> poison(kernel.workspace_bytes, std::byte{0xFF});
  gpu().upload(workspace.data(), poison.data(), poison.size());
  const Buffer device_state = gpu().allocate(sizeof(StepState));
  gpu().upload(device_state.data(), &state, sizeof(state));
  kernel.run({.inputs = in,
              .outputs = out,
              .workspace = {workspace.data(), kernel.workspace_bytes},
              .state = reinterpret_cast<StepState*>(device_state.data()),
              .stream = &gpu().compute()});
  gpu().download(&state, device_state.data(), sizeof(state));
}

void expect_states_close(const StepState& actual, const StepState& expected) {
  const auto near = [](double a, double e, const char* what) {
    if (std::isnan(e))
      EXPECT_TRUE(std::isnan(a)) << what;
    else
      EXPECT_NEAR(a, e, 1e-9 * std::max(1.0, std::abs(e))) << what;
  };
  near(actual.loss_sum, expected.loss_sum, "loss_sum");
  near(actual.weight_sum, expected.weight_sum, "weight_sum");
  near(actual.gradient_norm, expected.gradient_norm, "gradient_norm");
  near(actual.gradient_scale, expected.gradient_scale, "gradient_scale");
  near(actual.learning_rate, expected.learning_rate, "learning_rate");
  EXPECT_EQ(actual.stop_votes, expected.stop_votes);
  EXPECT_EQ(actual.evaluate_votes, expected.evaluate_votes);
  EXPECT_EQ(actual.skip, expected.skip);
  EXPECT_EQ(actual.diverged, expected.diverged);
  EXPECT_EQ(actual.step, expected.step);
  EXPECT_EQ(actual.update, expected.update);
}

/// One op on both sides; `slabs` are the outputs before, and those of float64 after.
void expect_same(std::string_view op, const Attributes& attributes, const Slabs& inputs,
                 Slabs& slabs, const StepState& before, double relative = 8 * kEpsilon) {
  SCOPED_TRACE(fmt::format("{} {}", op, attributes.to_string().substr(0, 80)));
  std::vector<OnGpu> in, out;
  for (const auto& slab : inputs) in.emplace_back(slab);
  for (const auto& slab : slabs) out.emplace_back(slab);
  StepState on_gpu = before, exact = before;
  run_on_gpu(op, attributes, in, out, on_gpu);
  run_slab_op(op, attributes, inputs, slabs, exact);
  for (std::size_t i = 0; i < slabs.size(); ++i)
    expect_close(out[i].get(), slabs[i], relative, fmt::format("slab {}", i));
  expect_states_close(on_gpu, exact);
}

std::vector<double> numbers(std::uint64_t seed, double low = -1, double high = 1) {
  return random_numbers(kElements, low, high, seed);
}

StepState in_training() {
  StepState state{.loss_sum = 12, .weight_sum = 7};
  state.gradient_scale = 0.3;
  state.learning_rate = 0.05;
  state.step = 9;
  state.update = 4;
  return state;
}

TEST(GpuSlabOps, UpdatesFollowFloat64AndLeavePaddingAlone) {
  struct Update {
    std::string_view op;
    Attributes attributes;
    std::size_t slabs;
  };
  for (const Update& update :
       {Update{"sgd", sgd_attributes({}, kSegments), 2},
        Update{"sgd", sgd_attributes({.momentum = 0.9}, kSegments), 2},
        Update{"sgd", sgd_attributes({.momentum = 0.9, .nesterov = true}, kSegments), 2},
        Update{"lars", lars_attributes({.momentum = 0.9, .trust = 0.01}, kSegments), 2},
        Update{"adamw", adamw_attributes({}, kSegments), 3},
        Update{"lion", lion_attributes({}, kSegments), 2}})
    for (const double skip : {0.0, 1.0}) {
      Slabs slabs{numbers(1), numbers(2), numbers(3, 0, 1)};
      slabs.resize(update.slabs);
      StepState state = in_training();
      state.skip = skip;
      expect_same(update.op, update.attributes, {numbers(4)}, slabs, state);
    }
}

TEST(GpuSlabOps, MovingAverageFollowsFloat64) {
  for (const double decay : {0.5, 0.9999}) {
    Slabs average{numbers(2)};
    expect_same("ema", ema_attributes(decay), {numbers(1)}, average, in_training());
  }
}

TEST(GpuSlabOps, BeginStepClearsTheSumsOnly) {
  Slabs none;
  StepState state = in_training();
  state.stop_votes = 3;
  expect_same("begin_step", {}, {}, none, state);
}

TEST(GpuSlabOps, FinishStepDecidesAsTheCpuDoes) {
  const LrSchedule schedule{
      .kind = LrKind::kCosine, .lr = 0.1, .warmup_updates = 2, .total_updates = 20};
  std::vector<double> bad = numbers(5);
  bad[kElements - 1] = kNan;
  for (const bool stop : {false, true})
    for (const double clip : {0.0, 0.5})
      for (const auto& gradient : {numbers(5), bad})
        for (const double weight : {7.0, 0.0}) {
          StepState state = in_training();
          state.weight_sum = weight;
          Slabs none;
          expect_same(
              "finish_step",
              finish_step_attributes(
                  {.nominal = 8, .clip_norm = clip, .stop_on_nan = stop, .schedule = schedule}),
              {gradient}, none, state);
        }
}

TEST(GpuSlabOps, FinishStepFollowsEverySchedule) {
  for (const LrKind kind : {LrKind::kConstant, LrKind::kLinear, LrKind::kCosine, LrKind::kStep,
                            LrKind::kMultistep, LrKind::kOneCycle, LrKind::kPolynomial})
    for (const std::uint64_t update : {0U, 1U, 3U, 9U, 19U}) {
      LrSchedule schedule{.kind = kind,
                          .lr = 0.1,
                          .min_lr = 0.001,
                          .warmup_updates = 3,
                          .total_updates = 20,
                          .step_every = 4};
      add_milestone(schedule, 5);
      add_milestone(schedule, 11);
      StepState state = in_training();
      state.update = update;
      Slabs none;
      expect_same("finish_step", finish_step_attributes({.nominal = 8, .schedule = schedule}),
                  {numbers(5)}, none, state);
    }
}

TEST(GpuSlabOps, CommitStoresOrAddsContributionsOfBothTypesInTheirOrder) {
  for (const bool accumulate : {false, true}) {
    const std::vector<std::size_t> sizes{1, 3, 257, 70001, 5, 64, 8, 2, 1000, 31};
    std::vector<std::size_t> targets;
    std::vector<OnGpu> contributions, ranges;
    Slabs expected;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto n = static_cast<std::int64_t>(sizes[i]);
      const std::vector<double> before = random_numbers(n, -1, 1, 90 + i);
      expected.push_back(accumulate ? before : std::vector<double>(sizes[i], 0.0));
      ranges.emplace_back(before);
      for (std::size_t tied = 0; tied <= i % 2; ++tied) {
        contributions.emplace_back(random_numbers(n, -1, 1, 10 * i + tied),
                                   (i + tied) % 3 == 0 ? DType::kF32 : DType::kBF16);
        const std::vector<double> rounded = contributions.back().get();
        for (std::size_t e = 0; e < sizes[i]; ++e) expected[i][e] += rounded[e];
        targets.push_back(i);
      }
    }
    StepState state;
    run_on_gpu("commit", commit_attributes(targets, accumulate), contributions, ranges, state);
    for (std::size_t i = 0; i < sizes.size(); ++i)
      expect_close(ranges[i].get(), expected[i], 3 * kEpsilon, fmt::format("range {}", i));
  }
}

TEST(GpuSlabOps, RunningAveragesFollowFloat64) {
  const std::vector<RunningAverageSegment> segments{
      {.offset = 0, .channels = 3, .momentum = 0.1},
      {.offset = 64, .channels = 300, .momentum = 0.4},
      {.offset = 704, .channels = 1, .momentum = 0.1}};
  for (const double skip : {0.0, 1.0}) {
    std::vector<double> sums = random_numbers(768, 1, 2, 1);
    sums[6] = 12;
    sums[64 + 600] = 0;  // a layer that has seen nothing
    sums[704 + 2] = 3;
    Slabs averages{random_numbers(768, -1, 1, 2)};
    StepState state = in_training();
    state.skip = skip;
    expect_same("running_average", running_average_attributes(segments), {sums}, averages, state);
  }
}

TEST(GpuSlabOps, CastRoundsAsTheHostDoes) {
  std::vector<double> values = numbers(3, -100, 100);
  values[5] = kNan;
  values[6] = std::numeric_limits<double>::infinity();
  values[7] = 1 + 0x1p-8;      // a tie, to even: 1
  values[8] = 1 + 3 * 0x1p-8;  // a tie, to even: 1 + 2^-6
  std::vector<OnGpu> in, out;
  in.emplace_back(values);
  out.emplace_back(std::vector<double>(kElements, 0.0), DType::kBF16);
  StepState state;
  run_on_gpu("cast", cast_attributes(DType::kBF16), in, out, state);
  const std::vector<double> actual = out[0].get();
  for (std::size_t i = 0; i < kElements; ++i) {
    const double expected = static_cast<double>(BFloat16(values[i]));
    ASSERT_TRUE(actual[i] == expected || (std::isnan(actual[i]) && std::isnan(expected)))
        << i << ": " << actual[i] << " instead of " << expected;
  }
}

}  // namespace
}  // namespace ddp::test
