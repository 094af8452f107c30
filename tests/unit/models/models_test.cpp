#include "models/model.h"

#include <algorithm>
#include <map>

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddp::models {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Pair;
using testing::ThrowsMessage;
using testing::UnorderedElementsAre;

/// "32x1x3x3 of axes 0312": the shape in files, and where its axes come from if they are permuted.
std::string describe(const FileLayout& layout) {
  const std::string shape = layout.file.to_string();
  return layout.order.empty() ? shape
                              : fmt::format("{} of axes {}", shape, fmt::join(layout.order, ""));
}

/// Builds a model on 28x28x1 images and returns how its parameters stand in files.
std::map<std::string, std::string> parameters_of(std::string_view name, bool training,
                                                 int classes = 10) {
  Graph graph(DType::kF32);
  const Value images = graph.input("images", {Shape{2, 28, 28, 1}, DType::kF32});
  const Value ids = graph.input("sample_ids", {Shape{2}, DType::kI64});
  const Value weights = graph.input("weights", {Shape{2}, DType::kF32});
  const Value logits = find_model(name).build(graph, images,
                                              {.classes = classes,
                                               .dropout = 0.25,
                                               .training = training,
                                               .seed = 1,
                                               .sample_ids = ids,
                                               .sample_weights = weights});
  EXPECT_EQ(logits.shape(), (Shape{2, classes}));
  std::map<std::string, std::string> shapes;
  for (const Parameter& parameter : graph.parameters())
    shapes[parameter.name] = describe(parameter.file);
  return shapes;
}

TEST(Models, AreListedByName) {
  std::vector<std::string_view> names;
  for (const Model* model : all_models()) {
    names.push_back(model->name);
    EXPECT_EQ(&find_model(model->name), model);
    EXPECT_FALSE(model->description.empty()) << model->name;
  }
  EXPECT_TRUE(std::ranges::is_sorted(names));
  EXPECT_THAT(names, testing::IsSupersetOf({"convnet", "mlp"}));
}

TEST(Models, AnUnknownNameIsAnsweredWithTheNearest) {
  EXPECT_THAT([] { find_model("convent"); },
              ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("'convent'"), HasSubstr("mean 'convnet'"), HasSubstr("mlp"))));
}

TEST(Models, MlpHasThreeLayers) {
  EXPECT_THAT(
      parameters_of("mlp", true, 7),
      UnorderedElementsAre(Pair("fc1.weight", "256x784 of axes 0312"), Pair("fc1.bias", "256"),
                           Pair("fc2.weight", "256x256"), Pair("fc2.bias", "256"),
                           Pair("fc3.weight", "7x256"), Pair("fc3.bias", "7")));
}

TEST(Models, ConvnetHasItsPublishedParameters) {
  EXPECT_THAT(
      parameters_of("convnet", true),
      UnorderedElementsAre(Pair("conv1.weight", "32x1x3x3 of axes 0312"), Pair("conv1.bias", "32"),
                           Pair("conv2.weight", "64x32x3x3 of axes 0312"), Pair("conv2.bias", "64"),
                           Pair("fc1.weight", "128x3136 of axes 0312"), Pair("fc1.bias", "128"),
                           Pair("fc2.weight", "10x128"), Pair("fc2.bias", "10")));
}

TEST(Models, EvaluateWithTheParametersTheyWereTrainedWith) {
  for (const Model* model : all_models())
    EXPECT_EQ(parameters_of(model->name, false), parameters_of(model->name, true)) << model->name;
}

/// Builds a ResNet on images of `side` pixels.
Graph& build_resnet(Graph& graph, std::string_view name, std::int64_t side,
                    const ModelOptions& options) {
  const Value images = graph.input("images", {Shape{2, side, side, 3}, DType::kF32});
  ModelOptions with_inputs = options;
  with_inputs.sample_weights = graph.input("weights", {Shape{2}, DType::kF32});
  find_model(name).build(graph, images, with_inputs);
  return graph;
}

TEST(ResNet, HasAsManyParametersAsTorchvisions) {
  const std::map<std::string_view, std::int64_t> expected{
      {"resnet18", 11'689'512}, {"resnet34", 21'797'672}, {"resnet50", 25'557'032}};
  for (const auto& [name, parameters] : expected) {
    Graph graph(DType::kF32);
    EXPECT_EQ(build_resnet(graph, name, 224, {.classes = 1000}).parameter_elements(), parameters);
  }
}

TEST(ResNet, TakesTheStemThatSuitsTheImagesOrTheOneAskedFor) {
  const auto first_filters = [](std::int64_t side, Stem stem) {
    Graph graph(DType::kF32);
    build_resnet(graph, "resnet18", side, {.stem = stem});
    return graph.value(graph.parameters()[0].value).type.shape;
  };
  EXPECT_EQ(first_filters(32, Stem::kAuto), (Shape{64, 3, 3, 3}));
  EXPECT_EQ(first_filters(64, Stem::kAuto), (Shape{64, 7, 7, 3}));
  EXPECT_EQ(first_filters(32, Stem::kImageNet), (Shape{64, 7, 7, 3}));
  EXPECT_EQ(first_filters(64, Stem::kSmall), (Shape{64, 3, 3, 3}));
}

TEST(ResNet, EveryResidualBlockCanBeRecomputed) {
  for (const auto& [name, blocks] :
       {std::pair{"resnet18", 8}, {"resnet34", 16}, {"resnet50", 16}}) {
    Graph graph(DType::kF32);
    EXPECT_EQ(build_resnet(graph, name, 32, {}).block_count(), blocks);
  }
}

TEST(Models, ConvnetSaysTheSmallestImageAndWhatTakesSmallerOnes) {
  const auto build = [](const char* model, std::int64_t height, std::int64_t width) {
    Graph graph(DType::kF32);
    const Value images = graph.input("images", {Shape{2, height, width, 1}, DType::kF32});
    find_model(model).build(graph, images, {.training = false});
  };
  EXPECT_NO_THROW(build("convnet", 4, 4));
  for (const auto& [height, width] : {std::pair{3, 28}, {28, 3}, {1, 1}}) {
    EXPECT_THAT([&] { build("convnet", height, width); },
                ThrowsMessage<ConfigError>(AllOf(HasSubstr("4x4 pixels or larger"),
                                                 HasSubstr(fmt::format("{}x{}", height, width)),
                                                 HasSubstr("--model mlp"))));
    EXPECT_NO_THROW(build("mlp", height, width));
  }
}

}  // namespace
}  // namespace ddp::models
