// Names of ops without parameters: what the model gives, or made up.
#include <algorithm>

#include <gmock/gmock.h>

#include "core/ops/add/add.h"
#include "core/ops/gelu/gelu.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pool/pool.h"
#include "core/ops/relu/relu.h"
#include "core/ops/reshape/reshape.h"
#include "core/ops/softmax/softmax.h"

namespace ddp::test {
namespace {

std::vector<std::string> names_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Op& op : graph.ops()) names.push_back(op.name);
  return names;
}

/// Adds one op of each kind, all called `name`.
void build(Graph& graph, const std::string& name) {
  const Value image = graph.input("image", {{2, 4, 4, 3}, DType::kF32});
  const Value x = graph.input("x", {{3, 3}, DType::kF32});
  relu(x, name);
  add(x, x, name);
  max_pool(image, {.name = name});
  avg_pool(image, {.name = name});
  global_average_pool(image, name);
  flatten(image, name);
  reshape(x, {9}, name);
  gelu(x, {.name = name});
  matmul(x, x, {.name = name});
  softmax(x, name);
}

TEST(OpName, IsWhatTheModelGives) {
  Graph graph(DType::kF32);
  build(graph, "layer");
  EXPECT_THAT(names_of(graph), testing::AllOf(testing::SizeIs(10), testing::Each("layer")));
}

TEST(OpName, IsMadeUpAndUniqueOtherwise) {
  Graph graph(DType::kF32);
  build(graph, "");
  build(graph, "");
  std::vector<std::string> names = names_of(graph);
  EXPECT_THAT(
      std::vector(names.begin(), names.begin() + 6),
      testing::ElementsAre("relu1", "add1", "pool1", "avg_pool1", "average_pool1", "reshape1"));
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

}  // namespace
}  // namespace ddp::test
