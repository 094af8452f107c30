// ResNets against torchvision's in float64, from uint8 images to gradients and running averages:
// the same path a training step takes. tests/fixtures/resnet/make_fixture.py made the expected
// numbers.
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/checkpoint/file_layout.h"
#include "core/train/parameters.h"
#include "models/model.h"

namespace ddp::models {
namespace {

constexpr double kTolerance = 1e-8;

/// The formula of the fixture: `n` numbers in [-1, 1) started by a name.
std::vector<double> uniform(const std::string& name, std::int64_t n) {
  std::int64_t start = 0, position = 0;
  for (const char c : name) start += ++position * static_cast<unsigned char>(c);
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < n; ++i)
    numbers.push_back(static_cast<double>(((i + start % 65536) * 40503 + 12345) % 65536) / 32768 -
                      1);
  return numbers;
}

std::vector<double> initial_values(const std::string& name, const Shape& shape) {
  std::vector<double> values = uniform(name, shape.elements());
  double scale = 0.25, offset = 0;
  if (shape.rank() == 4)
    scale = std::sqrt(6.0 / static_cast<double>(shape[1] * shape[2] * shape[3]));
  else if (shape.rank() == 2)
    scale = std::sqrt(3.0 / static_cast<double>(shape[1]));
  else if (name.ends_with("running_var"))
    scale = 0.5, offset = 1;
  else if (name.ends_with("weight"))
    offset = 1;
  for (double& value : values) value = offset + scale * value;
  return values;
}

/// Elements 0, …, n - 1 in eight places that are as far apart as can be, as the fixture samples
/// them.
std::vector<double> sampled(const std::vector<double>& values) {
  std::vector<double> samples;
  std::size_t last = values.size();
  for (std::size_t k = 0; k < 8; ++k) {
    const std::size_t at = k * (values.size() - 1) / 7;
    if (at != last) samples.push_back(values[at]);
    last = at;
  }
  return samples;
}

void expect_near(const std::vector<double>& actual, const nlohmann::json& expected,
                 const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double scale = 1;
  for (const double e : expected) scale = std::max(scale, std::abs(e));
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i].get<double>(), kTolerance * scale) << what << ", " << i;
}

/// A ResNet that is trained for one step on the fixture's images.
class ResNetStep {
 public:
  explicit ResNetStep(const nlohmann::json& expected, std::int64_t samples, int classes)
      : expected_(expected),
        samples_(samples),
        backend_(make_cpu_backend(2)),
        program_(options(classes)),
        memory_(*backend_, program_.plans()) {
    for (const SlabSegment& segment : program_.layout().segments) {
      const FileLayout& file = layout_of(segment);
      const std::vector<double> values = initial_values(segment.name, file.file);
      permute_from_file(file, sizeof(double), std::as_bytes(std::span(values)),
                        std::as_writable_bytes(slab(Region::kParameters, segment)));
    }
    for (const StatisticsSegment& segment : program_.layout().statistics) {
      const Shape channels{static_cast<std::int64_t>(segment.channels)};
      auto* at = reinterpret_cast<double*>(memory_.base(Region::kBuffers)) + segment.offset;
      for (const char* which : {".running_mean", ".running_var"})
        at = std::ranges::copy(initial_values(segment.name + which, channels), at).out;
    }
  }

  std::vector<double> evaluated() {
    Executor executor(program_.evaluation(), *backend_, memory_, nullptr);
    load(executor);
    executor.run();
    const std::span<const double> logits = executor.output(OutputIndex::kLogits).span<double>();
    return {logits.begin(), logits.end()};
  }
  double train() {
    Executor executor(program_.micro_step(0), *backend_, memory_, nullptr);
    load(executor);
    executor.run();
    const auto& state = *reinterpret_cast<StepState*>(memory_.base(Region::kState));
    return state.loss_sum / state.weight_sum;
  }
  std::map<std::string, std::vector<double>> gradients() {
    std::map<std::string, std::vector<double>> all;
    for (const SlabSegment& segment : program_.layout().segments) {
      std::vector<double> in_file(segment.elements);
      permute_to_file(layout_of(segment), sizeof(double),
                      std::as_bytes(slab(Region::kGradients, segment)),
                      std::as_writable_bytes(std::span(in_file)));
      all[segment.name] = in_file;
    }
    return all;
  }
  std::map<std::string, std::vector<double>> running() {
    std::map<std::string, std::vector<double>> all;
    for (const NamedTensor& tensor : export_parameters(program_, *backend_, memory_)) {
      if (tensor.type.dtype == DType::kI64)
        all[tensor.name] = {
            static_cast<double>(*reinterpret_cast<const std::int64_t*>(tensor.bytes.data()))};
      else if (tensor.name.find(".running_") != std::string::npos)
        all[tensor.name].assign(
            reinterpret_cast<const double*>(tensor.bytes.data()),
            reinterpret_cast<const double*>(tensor.bytes.data() + tensor.bytes.size()));
    }
    return all;
  }

 private:
  ProgramOptions options(int classes) {
    const Model& model = find_model(expected_["model"].get<std::string>());
    const Stem stem = expected_["stem"] == "small" ? Stem::kSmall : Stem::kImageNet;
    const auto side = expected_["side"].get<std::int64_t>();
    ProgramOptions options;
    options.model = [=, &model](Graph& graph, const ModelInputs& inputs, bool training) {
      return model.build(graph, inputs.images,
                         {.classes = classes,
                          .training = training,
                          .stem = stem,
                          .sample_ids = inputs.sample_ids,
                          .sample_weights = inputs.sample_weights});
    };
    options.buckets = [](const ReadyList& ready) {
      return std::vector<BucketRange>{{0, ready.size()}};
    };
    options.image = Shape{side, side, 3};
    options.classes = classes;
    options.mean = {0.5, 0.5, 0.5};
    options.stddev = {0.25, 0.25, 0.25};
    options.micro_batch = options.evaluation_batch = samples_;
    options.compute = DType::kF64;
    options.optimizer.finish.nominal = static_cast<double>(samples_);
    options.kernels = {.threads = 2};
    return options;
  }

  const FileLayout& layout_of(const SlabSegment& segment) const {
    return program_.graph().parameters()[segment.parameter.index()].file;
  }
  std::span<double> slab(Region region, const SlabSegment& segment) {
    return {reinterpret_cast<double*>(memory_.base(region)) + segment.offset, segment.elements};
  }

  void load(Executor& executor) const {
    const auto side = expected_["side"].get<std::int64_t>();
    const std::int64_t plane = side * side;
    const std::vector<double> numbers = uniform("images", samples_ * 3 * plane);
    const auto images = executor.input(InputIndex::kImages).span<std::uint8_t>();
    for (std::int64_t n = 0; n < samples_; ++n)
      for (std::int64_t c = 0; c < 3; ++c)
        for (std::int64_t i = 0; i < plane; ++i)
          images[static_cast<std::size_t>((n * plane + i) * 3 + c)] = static_cast<std::uint8_t>(
              (numbers[static_cast<std::size_t>((n * 3 + c) * plane + i)] + 1) * 128);
    const auto labels = executor.input(InputIndex::kLabels).span<std::int32_t>();
    for (std::size_t n = 0; n < labels.size(); ++n)
      labels[n] = static_cast<std::int32_t>((3 * n + 1) %
                                            static_cast<std::size_t>(program_.options().classes));
    std::ranges::fill(executor.input(InputIndex::kWeights).span<float>(), 1.0F);
    std::ranges::fill(executor.input(InputIndex::kSampleIds).span<std::int64_t>(), 0);
  }

  const nlohmann::json& expected_;
  std::int64_t samples_;
  std::unique_ptr<Backend> backend_;
  Program program_;
  RunMemory memory_;
};

class Torchvision : public testing::TestWithParam<std::size_t> {};

TEST_P(Torchvision, AgreesOnOutputsLossGradientsAndRunningStatistics) {
  std::ifstream file(DDP_FIXTURES "/resnet/resnet.json");
  ASSERT_TRUE(file) << DDP_FIXTURES;
  const nlohmann::json fixture = nlohmann::json::parse(file);
  const nlohmann::json& expected = fixture["cases"][GetParam()];
  ResNetStep step(expected, fixture["samples"].get<std::int64_t>(), fixture["classes"].get<int>());
  expect_near(step.evaluated(), expected["evaluated"], "logits in evaluation");
  const double loss = step.train();
  EXPECT_NEAR(loss, expected["loss"].get<double>(), kTolerance);

  const auto gradients = step.gradients();
  ASSERT_EQ(gradients.size(), expected["gradients"].size());
  for (const auto& [name, values] : gradients)
    expect_near(sampled(values), expected["gradients"].at(name), "gradient of " + name);
  const auto running = step.running();
  ASSERT_EQ(running.size(), expected["running"].size());
  for (const auto& [name, values] : running)
    expect_near(sampled(values), expected["running"].at(name), name);
}

INSTANTIATE_TEST_SUITE_P(Fixture, Torchvision, testing::Range(std::size_t{0}, std::size_t{4}));

}  // namespace
}  // namespace ddp::models
