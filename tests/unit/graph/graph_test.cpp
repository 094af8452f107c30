#include "core/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/add/add.h"
#include "core/ops/linear/linear.h"
#include "core/ops/relu/relu.h"

namespace ddp {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Property;
using testing::ThrowsMessage;

Value matrix(Graph& graph, std::int64_t rows, std::int64_t columns) {
  return graph.input("x", {Shape{rows, columns}, DType::kF32});
}

TEST(Graph, NamesWhatIsInsideAScopeWithItsPrefix) {
  Graph graph(DType::kF32);
  const Value x = matrix(graph, 2, 3);
  {
    const Scope block(graph, "block1");
    const Scope branch(graph, "left");
    linear(x, {.name = "fc", .units = 4});
  }
  linear(x, {.name = "fc", .units = 4});
  std::vector<std::string> names;
  for (const Parameter& parameter : graph.parameters()) names.push_back(parameter.name);
  EXPECT_THAT(names, testing::ElementsAre("block1.left.fc.weight", "block1.left.fc.bias",
                                          "fc.weight", "fc.bias"));
  EXPECT_EQ(graph.ops()[0].name, "block1.left.fc");
}

TEST(Graph, NumbersUnnamedOpsInEachScopeFromOne) {
  Graph graph(DType::kF32);
  const Value x = matrix(graph, 2, 3);
  relu(relu(x));
  {
    const Scope scope(graph, "block");
    relu(x);
  }
  std::vector<std::string> names;
  for (const Op& op : graph.ops()) names.push_back(op.name);
  EXPECT_THAT(names, testing::ElementsAre("relu1", "relu2", "block.relu1"));
}

TEST(Graph, SharesAParameterOfTheSameNameAndShape) {
  Graph graph(DType::kF32);
  const Value first = graph.parameter("w", {3, 4}, {});
  EXPECT_EQ(graph.parameter("w", {3, 4}, {}), first);
  EXPECT_EQ(graph.parameters().size(), 1U);
  EXPECT_EQ(graph.parameter_elements(), 12);
}

TEST(Graph, RefusesOneNameForTwoShapes) {
  Graph graph(DType::kF32);
  graph.parameter("w", {3, 4}, {});
  EXPECT_THAT(
      [&] {
        graph.parameter("w", {4, 3}, {});
      },
      ThrowsMessage<ConfigError>(AllOf(HasSubstr("'w'"), HasSubstr("3x4"), HasSubstr("4x3"))));
}

TEST(Graph, DecaysMatricesAndFiltersButNotVectors) {
  Graph graph(DType::kF32);
  linear(matrix(graph, 2, 3), {.name = "fc", .units = 4});
  EXPECT_TRUE(graph.parameters()[0].decay) << graph.parameters()[0].name;
  EXPECT_FALSE(graph.parameters()[1].decay) << graph.parameters()[1].name;
}

TEST(Graph, AShapeErrorNamesTheLayerAndItsInputs) {
  Graph graph(DType::kF32);
  const Value a = matrix(graph, 2, 3), b = graph.input("other", {Shape{2, 4}, DType::kF32});
  const Scope scope(graph, "block1");
  EXPECT_THAT([&] { add(a, b); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("layer 'block1.add1' (add)"),
                                               HasSubstr("x 2x3"), HasSubstr("other 2x4"))));
}

TEST(Graph, RefusesAValueOfAnotherGraph) {
  Graph graph(DType::kF32), other(DType::kF32);
  const Value x = matrix(graph, 2, 3), y = matrix(other, 2, 3);
  EXPECT_THROW(add(x, y), InternalError);
}

TEST(Graph, ErasingOpsKeepsTheProducersOfTheOthers) {
  Graph graph(DType::kF32);
  const Value a = relu(matrix(graph, 2, 3)), b = relu(a), c = relu(a);
  graph.erase_ops({false, true, false});
  EXPECT_EQ(graph.ops().size(), 2U);
  EXPECT_EQ(graph.value(a.id).producer, OpId(0));
  EXPECT_FALSE(graph.value(b.id).producer.valid());
  EXPECT_EQ(graph.value(c.id).producer, OpId(1));
}

TEST(OpRegistry, KnowsTheKernelOfEveryOpThatIsNoView) {
  for (const std::string_view name : registered_ops())
    if (!op_definition(name).is_view) {
      EXPECT_NO_THROW(kernel_factory(BackendKind::kCpu, name)) << name;
    }
}

TEST(OpRegistry, NamesAnOpThatDoesNotExist) {
  EXPECT_THAT([] { op_definition("convolve"); },
              ThrowsMessage<InternalError>(HasSubstr("'convolve'")));
  EXPECT_THAT([] { kernel_factory(BackendKind::kCuda, "no such op"); },
              ThrowsMessage<InternalError>(AllOf(HasSubstr("'no such op'"), HasSubstr("CUDA"))));
}

TEST(Attributes, PrintNumbersSoThatTheyReadBack) {
  const Attributes attributes{{"stride", std::int64_t{2}},
                              {"scale", 0.1},
                              {"kind", std::string("mean")},
                              {"list", std::vector<double>{1, 0.25}}};
  EXPECT_EQ(attributes.to_string(), "stride=2 scale=0.1 kind=mean list=[1,0.25]");
}

TEST(Attributes, ReplaceAndNameWhatIsMissingOrOfAnotherType) {
  Attributes attributes{{"stride", std::int64_t{2}}};
  attributes.set("stride", std::int64_t{3});
  EXPECT_EQ(attributes.integer("stride"), 3);
  EXPECT_FALSE(attributes.has("pad"));
  EXPECT_THAT([&] { attributes.integer("pad"); }, ThrowsMessage<InternalError>(HasSubstr("'pad'")));
  EXPECT_THAT([&] { attributes.text("stride"); },
              ThrowsMessage<InternalError>(HasSubstr("'stride'")));
}

}  // namespace
}  // namespace ddp
