#include "models/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddp::models {
namespace {

using testing::HasSubstr;

const DefaultInput kImages32{
    .data = "synthetic", .channels = 3, .height = 32, .width = 32, .classes = 7};

struct Inputs {
  Value images;
  ModelOptions options;
};
Inputs inputs_of(Graph& graph, bool training) {
  const Value images = graph.input("images", {Shape{2, 32, 32, 3}, DType::kF32});
  return {.images = images,
          .options = {.classes = 7,
                      .dropout = 0.25,
                      .training = training,
                      .seed = 3,
                      .sample_ids = graph.input("sample_ids", {Shape{2}, DType::kI64}),
                      .sample_weights = graph.input("weights", {Shape{2}, DType::kF32})}};
}

/// All that training and files know of a graph: ops, blocks, parameters and running statistics.
std::string describe(const Graph& graph) {
  std::string text;
  for (const Op& op : graph.ops()) {
    text += fmt::format("{} {} {} block {}:", op.name, op.definition->name,
                        op.attributes.to_string(), op.block);
    for (const ValueId input : op.inputs) text += " " + graph.value(input).name;
    text += '\n';
  }
  for (const Parameter& parameter : graph.parameters()) {
    text += fmt::format("{} {} {} {}", parameter.name, parameter.file.file.to_string(),
                        static_cast<int>(parameter.init.kind), parameter.init.scale);
    for (const int axis : parameter.file.order) text += fmt::format(" {}", axis);
    text += '\n';
  }
  for (const RunningStatistics& running : graph.statistics())
    text += fmt::format("{} {}\n", running.name, running.momentum);
  return text;
}

TEST(ModelText, EveryShippedModelReadsBackAsItWasPrinted) {
  for (const Model* model : all_models()) {
    Graph original(DType::kF32);
    const Inputs in = inputs_of(original, true);
    model->build(original, in.images, in.options);
    const std::string text = print_model(original, kImages32, in.options);
    const TextModel read(text, "printed");
    EXPECT_EQ(read.input().width, 32);
    EXPECT_EQ(read.input().classes, 7);
    for (const bool training : {true, false}) {
      Graph expected(DType::kF32), actual(DType::kF32);
      const Inputs by_function = inputs_of(expected, training),
                   by_text = inputs_of(actual, training);
      model->build(expected, by_function.images, by_function.options);
      read.build(actual, by_text.images, by_text.options);
      EXPECT_EQ(describe(actual), describe(expected)) << model->name;
    }
    Graph again(DType::kF32);
    const Inputs second = inputs_of(again, true);
    read.build(again, second.images, second.options);
    EXPECT_EQ(print_model(again, kImages32, second.options), text) << model->name;
  }
}

TEST(ModelText, LeavesOutWhatFollowsFromTheLayerBeforeAndTheClasses) {
  const TextModel model(
      "layer { name: \"flat\" flatten {} }\n"
      "layer { name: \"fc1\" linear { units: 5 } }\n"
      "layer { name: \"act\" relu {} }\n"
      "layer { name: \"fc2\" linear {} }\n",
      "m.pbtxt");
  Graph graph(DType::kF32);
  const Inputs in = inputs_of(graph, true);
  EXPECT_EQ(model.build(graph, in.images, in.options).shape(), (Shape{2, 7}));
  EXPECT_EQ(graph.parameter_elements(), 3 * 32 * 32 * 5 + 5 + 5 * 7 + 7);
}

/// Reads and builds a text; errors say where.
void build(const std::string& text) {
  const TextModel model(text, "m.pbtxt");
  Graph graph(DType::kF32);
  const Inputs in = inputs_of(graph, true);
  model.build(graph, in.images, in.options);
}

TEST(ModelText, ErrorsNameFileLineColumnAndWhatWasMeant) {
  const struct {
    const char* text;
    std::vector<const char*> says;
  } cases[] = {
      {"layer { name: \"a\" relu {} }\nlayer { name: \"b\" relo {} }",
       {"m.pbtxt:2:19", "relo", "relu"}},
      {"layer { name: \"a\" convolution { filter: 3 } }", {"m.pbtxt:1:33", "filter", "filters"}},
      {"layer { name: \"a\"", {"m.pbtxt:1:"}},
      {"", {"no layer"}},
      {"layer { name: \"a\" relu {} }\n\nlayer { name: \"a\" relu {} }",
       {"m.pbtxt:3:1", "second layer", "'a'"}},
      {"layer { relu {} }", {"m.pbtxt:1:1", "needs a name"}},
      {"layer { name: \"images\" relu {} }", {"m.pbtxt:1:1", "the input's"}},
      {"layer { name: \"a\" }", {"m.pbtxt:1:1", "does not say what it is"}},
      {"layer { name: \"conv\" convolution {} }", {"m.pbtxt:1:1", "number of filters"}},
      {"layer { name: \"first\" relu {} }\nlayer { name: \"b\" bottom: \"frist\" relu {} }",
       {"m.pbtxt:2:1", "'frist'", "'first'"}},
      {"layer { name: \"a\" relu {} }\nlayer { name: \"b\" bottom: \"a\" add {} }",
       {"m.pbtxt:2:1", "reads 2 layers, not 1"}},
      {"layer { name: \"a\" global_average_pool {} }\n"
       "layer { name: \"b\" bottom: \"images\" bottom: \"a\" add {} }",
       {"m.pbtxt:2:1", "'images' 2x32x32x3", "'a' 2x3"}},
      {"layer { name: \"conv\" convolution { filters: 4 kernel: 40 } }",
       {"m.pbtxt:1:1", "'conv'", "'images' 2x32x32x3", "40x40"}},
      {"layer { name: \"left\" relu {} }\nlayer { name: \"b\" bottom: \"images\" flatten {} }\n"
       "layer { name: \"fc\" linear {} }",
       {"m.pbtxt:1:1", "nobody reads", "'left'"}},
      {"layer { name: \"flat\" flatten {} }\nlayer { name: \"fc\" linear { units: 9 } }",
       {"m.pbtxt:2:1", "'fc'", "2x9", "2x7"}},
  };
  for (const auto& [text, says] : cases) {
    SCOPED_TRACE(text);
    try {
      build(text);
      ADD_FAILURE() << "no error";
    } catch (const ConfigError& error) {
      for (const char* part : says) EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }
}

TEST(ModelText, NeighboursOfOneBlockNameFormOneBlock) {
  const TextModel model(
      "layer { name: \"flat\" flatten {} }\n"
      "layer { name: \"a\" block: \"x\" relu {} }\n"
      "layer { name: \"b\" block: \"x\" relu {} }\n"
      "layer { name: \"c\" block: \"y\" relu {} }\n"
      "layer { name: \"fc\" linear {} }\n",
      "m.pbtxt");
  Graph graph(DType::kF32);
  const Inputs in = inputs_of(graph, true);
  model.build(graph, in.images, in.options);
  std::vector<int> blocks;
  for (const Op& op : graph.ops()) blocks.push_back(op.block);
  EXPECT_EQ(blocks, (std::vector<int>{kNoBlock, 0, 0, 1, kNoBlock, kNoBlock}));
}

}  // namespace
}  // namespace ddp::models
