#include "models/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/ops/conv2d/conv2d.h"
#include "core/ops/embedding/embedding.h"
#include "core/ops/gelu/gelu.h"
#include "core/ops/layernorm/layernorm.h"
#include "core/ops/linear/linear.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pool/pool.h"
#include "core/ops/reshape/reshape.h"
#include "core/ops/softmax/softmax.h"

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

/// Behind the layer that a test looks at, so that the model gives logits.
const std::string kTail =
    "layer { name: \"flat\" flatten {} }\n"
    "layer { name: \"fc\" linear {} }\n";

TEST(ModelText, EveryKindBuildsItsOpAndReadsBackAsItWasPrinted) {
  const std::string queries =
      "layer { name: \"q\" convolution { filters: 4 } }\n"
      "layer { name: \"k\" bottom: \"images\" convolution { filters: 4 } }\n";
  const auto convolution = [](Value x, const char* name) {
    return conv2d(x, {.name = name, .filters = 4});
  };
  const struct {
    std::string text;
    std::function<Value(Value images)> build;
  } cases[] = {
      {"layer { name: \"a\" average_pool {} }", [](Value x) { return avg_pool(x, {.name = "a"}); }},
      {"layer { name: \"a\" average_pool { kernel: 3 stride: 2 pad: 1 } }",
       [](Value x) { return avg_pool(x, {.name = "a", .kernel = 3, .stride = 2, .pad = 1}); }},
      {"layer { name: \"a\" layernorm {} }", [](Value x) { return layernorm(x, {.name = "a"}); }},
      {"layer { name: \"a\" flatten {} }\nlayer { name: \"b\" layernorm { eps: 1e-6 } }",
       [](Value x) { return layernorm(flatten(x, "a"), {.name = "b", .eps = 1e-6}); }},
      {"layer { name: \"a\" gelu {} }", [](Value x) { return gelu(x, {.name = "a"}); }},
      {"layer { name: \"a\" gelu { approximate: TANH } }",
       [](Value x) { return gelu(x, {.name = "a", .approximate = "tanh"}); }},
      {"layer { name: \"a\" softmax {} }", [](Value x) { return softmax(x, "a"); }},
      {queries + "layer { name: \"a\" bottom: \"q\" bottom: \"k\" matmul { transpose_b: true } }",
       [&](Value x) {
         const Value q = convolution(x, "q"), k = convolution(x, "k");
         return matmul(q, k, {.name = "a", .transpose_b = true});
       }},
      {queries + "layer { name: \"a\" bottom: \"k\" bottom: \"q\" matmul { transpose_a: true } }",
       [&](Value x) {
         const Value q = convolution(x, "q"), k = convolution(x, "k");
         return matmul(k, q, {.name = "a", .transpose_a = true});
       }},
      {"layer { name: \"q\" convolution { filters: 32 } }\n"
       "layer { name: \"a\" bottom: \"images\" bottom: \"q\"\n"
       "  matmul { transpose_a: true transpose_b: true } }\n"
       "layer { name: \"b\" bottom: \"images\" bottom: \"a\" matmul {} }",
       [](Value x) {
         const Value q = conv2d(x, {.name = "q", .filters = 32});
         return matmul(x, matmul(x, q, {.name = "a", .transpose_a = true, .transpose_b = true}),
                       {.name = "b"});
       }},
  };
  for (const auto& [text, build] : cases) {
    SCOPED_TRACE(text);
    Graph expected(DType::kF32), by_text(DType::kF32), by_print(DType::kF32);
    const Inputs in = inputs_of(expected, true), in_text = inputs_of(by_text, true),
                 in_print = inputs_of(by_print, true);
    linear(flatten(build(in.images), "flat"), {.name = "fc", .units = 7});
    TextModel(text + "\n" + kTail, "m.pbtxt").build(by_text, in_text.images, in_text.options);
    EXPECT_EQ(describe(by_text), describe(expected));
    const std::string printed = print_model(expected, kImages32, in.options);
    TextModel(printed, "printed").build(by_print, in_print.images, in_print.options);
    EXPECT_EQ(describe(by_print), describe(expected));
    EXPECT_EQ(print_model(by_print, kImages32, in_print.options), printed);
  }
}

TEST(ModelText, RefusesToPrintWhatNoTextCanBuild) {
  const struct {
    const char* says;
    std::function<Value(Graph& graph, Value images)> build;
  } cases[] = {
      {"'ids' (embedding)",
       [](Graph& graph, Value) {
         const Value ids = graph.input("tokens", {Shape{2, 3}, DType::kI32});
         return embedding(ids, {.name = "ids", .entries = 5, .features = 4});
       }},
      {"'samples' (matmul)",
       [](Graph&, Value images) {
         const Value x = flatten(images);
         return matmul(x, x, {.name = "samples", .transpose_b = true});
       }},
  };
  for (const auto& [says, build] : cases) {
    Graph graph(DType::kF32);
    const Inputs in = inputs_of(graph, true);
    build(graph, in.images);
    try {
      print_model(graph, kImages32, in.options);
      ADD_FAILURE() << "no error for " << says;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(says));
    }
  }
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
      {"layer { name: \"a\"\n", {"m.pbtxt:", "ends before it is complete", "closing }"}},
      {"layer { name: \"a\" relu {", {"m.pbtxt:1:", "ends before it is complete"}},
      {"layer", {"m.pbtxt:1:", "ends before it is complete"}},
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
       {"m.pbtxt:2:1", "'b' (add) needs 2 bottoms, has 1"}},
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
      {"layer { name: \"flat\" flatten {} }\nlayer { name: \"a\" average_pool {} }",
       {"m.pbtxt:2:1", "'a'", "'flat' 2x3072", "average pooling needs images"}},
      {"layer { name: \"a\" average_pool { kernel: 40 } }",
       {"m.pbtxt:1:1", "'a'", "'images' 2x32x32x3", "40x40 window"}},
      {"layer { name: \"a\" average_pool { pad: 2 } }",
       {"m.pbtxt:1:1", "'a'", "'images' 2x32x32x3", "pads by 2"}},
      {"layer { name: \"a\" average_pool { stride: -1 } }",
       {"m.pbtxt:1:1", "'a'", "'images' 2x32x32x3", "stride of average pooling is -1"}},
      {"layer { name: \"a\" average_pool { filters: 1 } }",
       {"m.pbtxt:1:34", "unknown field filters"}},
      {"layer { name: \"a\" layernorm { eps: -1 } }",
       {"m.pbtxt:1:1", "'a'", "'images' 2x32x32x3", "eps of layer norm is -1"}},
      {"layer { name: \"a\" gelu { approximate: TAN } }", {"m.pbtxt:1:", "TAN", "approximate"}},
      {"layer { name: \"first\" relu {} }\n"
       "layer { name: \"a\" bottom: \"first\" bottom: \"images\" average_pool {} }",
       {"m.pbtxt:2:1", "needs 1 bottom, has 2"}},
      {"layer { name: \"first\" relu {} }\n"
       "layer { name: \"a\" bottom: \"first\" bottom: \"images\" layernorm {} }",
       {"m.pbtxt:2:1", "needs 1 bottom, has 2"}},
      {"layer { name: \"first\" relu {} }\n"
       "layer { name: \"a\" bottom: \"first\" bottom: \"images\" gelu {} }",
       {"m.pbtxt:2:1", "needs 1 bottom, has 2"}},
      {"layer { name: \"first\" relu {} }\n"
       "layer { name: \"a\" bottom: \"first\" bottom: \"images\" softmax {} }",
       {"m.pbtxt:2:1", "needs 1 bottom, has 2"}},
      {"layer { name: \"a\" matmul {} }", {"m.pbtxt:1:1", "'a' (matmul) needs 2 bottoms, has 0"}},
      {"layer { name: \"first\" relu {} }\n"
       "layer { name: \"a\" bottom: \"first\" bottom: \"images\" matmul {} }",
       {"m.pbtxt:2:1", "'first' 2x32x32x3, 'images' 2x32x32x3", "a has 3 columns, b has 32 rows"}},
      {"layer { name: \"half\" max_pool {} }\n"
       "layer { name: \"a\" bottom: \"half\" bottom: \"images\" matmul { transpose_b: true } }",
       {"m.pbtxt:2:1", "'half' 2x16x16x3, 'images' 2x32x32x3", "axis 1 is 16 in a and 32 in b"}},
      {"layer { name: \"flat\" flatten {} }\n"
       "layer { name: \"a\" bottom: \"images\" bottom: \"flat\" matmul {} }",
       {"m.pbtxt:2:1", "'images' 2x32x32x3, 'flat' 2x3072", "equal rank"}},
      {"layer { name: \"flat\" flatten {} }\n"
       "layer { name: \"a\" bottom: \"flat\" bottom: \"flat\" matmul { transpose_b: true } }",
       {"m.pbtxt:2:1", "'flat' 2x3072, 'flat' 2x3072", "mixes samples"}},
      {"layer { name: \"a\" bottom: \"b\" relu {} }\nlayer { name: \"b\" relu {} }",
       {"m.pbtxt:1:1", "'b', which stands below it, at m.pbtxt:2:1", "listed in order"}},
      {"layer { name: \"a\" bottom: \"a\" relu {} }", {"m.pbtxt:1:1", "'a' reads itself"}},
      {"layer { name: \"a\" batchnorm { eps: -1 } }", {"m.pbtxt:1:1", "eps of batch norm is -1"}},
      {"layer { name: \"a\" batchnorm { eps: nan } }", {"m.pbtxt:1:1", "eps of batch norm"}},
      {"layer { name: \"a\" batchnorm { momentum: 2 } }",
       {"m.pbtxt:1:1", "momentum of batch norm is 2"}},
      {"layer { name: \"a\" dropout {} }\nlayer { name: \"b\" dropout { instance: 1 } }",
       {"m.pbtxt:2:29", "dropout 'b' has instance 1, as 'a' has"}},
      {"layer { name: \"a\" dropout { instance: 2 } }\nlayer { name: \"b\" dropout {} }",
       {"m.pbtxt:2:1", "'b' has instance 2 by its place", "as 'a' has"}},
      {"input { classes: 1 }\nlayer { name: \"a\" relu {} }",
       {"m.pbtxt:1:9", "classes of the input is 1, legal are 2.."}},
      {"input {\n  height: 0 }\nlayer { name: \"a\" relu {} }",
       {"m.pbtxt:2:3", "height of the input is 0"}},
      {"input { width: 9223372036854775807 }\nlayer { name: \"a\" relu {} }",
       {"m.pbtxt:1:9", "width of the input is 9223372036854775807"}},
      {"input { channels: -3 }\nlayer { name: \"a\" relu {} }",
       {"m.pbtxt:1:9", "channels of the input is -3"}},
      {"layer { name: \"a\" embedding {} }", {"m.pbtxt:1:19", "unknown field embedding"}},
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

/// What building `text` is refused with; empty if it is not.
std::string error_of(const std::string& text) {
  try {
    build(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ModelText, ALayerErrorSaysPlaceLayerAndBottomsOnceInTheNamesOfTheText) {
  EXPECT_EQ(error_of("layer { name: \"f\" flatten {} }\n"
                     "layer { name: \"h\" bottom: \"f\" linear { units: 5 } }\n"
                     "layer { name: \"s\" bottom: \"f\" bottom: \"h\" add {} }"),
            "m.pbtxt:3:1: layer 's' (add of 'f' 2x3072, 'h' 2x5): both summands need the same "
            "shape and type");
}

TEST(ModelText, ExtentsThatNoTensorHasAreRefusedAtTheirLayer) {
  constexpr const char* kLargest = "9223372036854775807";
  const auto layer = [](const std::string& kind) {
    return "layer { name: \"flat\" flatten {} }\nlayer { name: \"a\" " + kind + " }";
  };
  const auto first = [](const std::string& kind) { return "layer { name: \"a\" " + kind + " }"; };
  const std::pair<std::string, const char*> cases[] = {
      {layer(fmt::format("linear {{ units: {} }}", kLargest)), "m.pbtxt:2:1"},
      {layer("linear { units: -9223372036854775808 }"), "m.pbtxt:2:1"},
      {first(fmt::format("convolution {{ filters: {} }}", kLargest)), "m.pbtxt:1:1"},
      {first("convolution { filters: 4 kernel: 2147483647 pad: 2147483647 }"), "m.pbtxt:1:1"},
      {first("convolution { filters: 4 kernel: 3 pad: 1000000000 }"), "m.pbtxt:1:1"},
      {first("convolution { filters: 4 kernel: 3 pad: 1048576 }"), "m.pbtxt:1:1"},
      {first(fmt::format("convolution {{ filters: 4 pad: {} }}", kLargest)), "m.pbtxt:1:1"},
      {first("convolution { filters: 4 pad: -9223372036854775808 }"), "m.pbtxt:1:1"},
      {first(fmt::format("convolution {{ filters: 4 kernel: {} }}", kLargest)), "m.pbtxt:1:1"},
      {first("max_pool { kernel: 2147483647 pad: 1073741823 }"), "m.pbtxt:1:1"},
      {first("average_pool { kernel: 2147483647 }"), "m.pbtxt:1:1"},
  };
  for (const auto& [text, place] : cases) {
    const std::string error = error_of(text);
    EXPECT_TRUE(error.starts_with(place)) << text << ": " << error;
    EXPECT_THAT(error, HasSubstr("layer 'a'"));
  }
}

TEST(ModelText, DropoutsAreNumberedByTheirPlaceUnlessTheySayAnother) {
  const TextModel model(
      "layer { name: \"a\" dropout {} }\n"
      "layer { name: \"b\" relu {} }\n"
      "layer { name: \"c\" dropout { instance: 7 } }\n"
      "layer { name: \"d\" dropout {} }\n" +
          kTail,
      "m.pbtxt");
  Graph graph(DType::kF32);
  const Inputs in = inputs_of(graph, true);
  model.build(graph, in.images, in.options);
  std::vector<std::int64_t> instances;
  for (const Op& op : graph.ops())
    if (op.definition->name == "dropout") instances.push_back(op.attributes.integer("instance"));
  EXPECT_EQ(instances, (std::vector<std::int64_t>{1, 7, 3}));
}

TEST(ModelText, NotesABlockThatGoesOnBehindOtherLayers) {
  const auto notes = [](const char* middle) {
    return TextModel(fmt::format("layer {{ name: \"a\" block: \"x\" relu {{}} }}\n"
                                 "layer {{ name: \"b\" {} relu {{}} }}\n"
                                 "layer {{ name: \"c\" block: \"x\" relu {{}} }}\n",
                                 middle),
                     "m.pbtxt")
        .block_notes();
  };
  EXPECT_THAT(notes("block: \"x\""), testing::IsEmpty());
  for (const char* other : {"", "block: \"y\""})
    EXPECT_THAT(notes(other), testing::ElementsAre(testing::AllOf(
                                  HasSubstr("m.pbtxt:3:1"), HasSubstr("block 'x' ended at layer "),
                                  HasSubstr("neighbours"))));
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
