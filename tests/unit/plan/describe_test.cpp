#include "core/plan/describe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/training/training.h"

namespace ddp::test {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;

const DatasetInfo kImages{.image = Shape{28, 28, 1}, .classes = 10, .mean = {0.3}, .stddev = {0.2}};

class Describe : public testing::Test {
 protected:
  const TrainingRun run_{.model = "convnet", .ranks = 2, .compute = DType::kF32};
  const Program program_{program_options(run_, kImages)};
  const Plan& plan_ = program_.micro_step(0);
  const PlanFacts facts_{.model = "convnet",
                         .ranks = 2,
                         .micro_batch = 8,
                         .accum = 1,
                         .schedule_hash = "0123456789abcdef",
                         .kernel_hash = "fedcba9876543210"};
  const ordered_json json_ = plan_json(plan_, program_.graph(), program_.layout(), facts_);
  const std::string text_ = describe_plan(plan_, program_.graph(), program_.layout(), facts_);
};

TEST_F(Describe, JsonHoldsWhatScriptsRelyOn) {
  for (const char* key : {"parameters", "schedule_hash", "kernel_hash", "flops", "bytes", "memory",
                          "buckets", "steps"})
    EXPECT_TRUE(json_.contains(key)) << key;
  EXPECT_EQ(json_["parameters"], 421642);
  EXPECT_EQ(json_["schedule_hash"], facts_.schedule_hash);
  EXPECT_EQ(json_["kernel_hash"], facts_.kernel_hash);
  EXPECT_EQ(json_["steps"].size(), plan_.steps.size());
}

TEST_F(Describe, TotalsAreTheSumsOfTheirParts) {
  double flops = 0, bytes = 0;
  for (const ordered_json& step : json_["steps"])
    if (step["type"] == "compute") {
      flops += step["flops"].get<double>();
      bytes += step["bytes"].get<double>();
    }
  EXPECT_EQ(json_["flops"], flops);
  EXPECT_EQ(json_["bytes"], bytes);
  std::int64_t parameters = 0, reduced = 0;
  for (const ordered_json& tensor : json_["tensors"])
    parameters += tensor["elements"].get<std::int64_t>();
  EXPECT_EQ(json_["parameters"], parameters);
  for (const ordered_json& bucket : json_["buckets"])
    reduced += bucket["bytes"].get<std::int64_t>();
  const ordered_json& memory = json_["memory"];
  EXPECT_EQ(memory["gradients"], reduced);
  EXPECT_EQ(memory["total"].get<std::int64_t>(),
            memory["arena"].get<std::int64_t>() + memory["input"].get<std::int64_t>() +
                memory["parameters"].get<std::int64_t>() + memory["gradients"].get<std::int64_t>() +
                memory["optimizer"].get<std::int64_t>());
  EXPECT_LT(memory["arena"], memory["arena_without_reuse"]);
}

TEST_F(Describe, FlopsAreThoseOfTheModel) {
  // Multiply-adds of one image: conv1, conv2, fc1, fc2; without the gradient of conv1's input.
  const double conv1 = 28 * 28 * 32 * 9, conv2 = 14 * 14 * 64 * 9 * 32, fc1 = 3136 * 128,
               fc2 = 128 * 10;
  const double products = 2 * 8 * (3 * (conv1 + conv2 + fc1 + fc2) - conv1);
  EXPECT_GE(plan_.cost.flops, products);
  EXPECT_LE(plan_.cost.flops, 1.05 * products) << "element-wise ops are little beside the products";
}

TEST_F(Describe, TextMentionsEveryParameterStepAndHash) {
  for (const Parameter& parameter : program_.graph().parameters())
    EXPECT_THAT(text_, HasSubstr(parameter.name));
  for (const Step& step : plan_.steps) {
    const auto* compute = std::get_if<ComputeStep>(&step);
    const auto* comm = std::get_if<CommStep>(&step);
    const std::string name = compute ? compute->name : comm ? comm->collective.label : "";
    EXPECT_THAT(text_, HasSubstr(name + " "));
  }
  EXPECT_THAT(text_, HasSubstr("421642"));
  EXPECT_THAT(text_, HasSubstr(facts_.schedule_hash));
  EXPECT_THAT(text_, HasSubstr(facts_.kernel_hash));
}

}  // namespace
}  // namespace ddp::test
