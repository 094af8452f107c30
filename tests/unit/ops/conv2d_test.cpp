#include "core/ops/conv2d/conv2d.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/bias/bias.h"
#include "core/ops/relu/relu.h"
#include "tests/support/gradcheck.h"

namespace ddp::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// The formula of the header, term by term.
std::vector<double> reference(const std::vector<double>& x, const std::vector<double>& w,
                              const Conv2dGeometry& g) {
  std::vector<double> y;
  for (std::int64_t n = 0; n < g.n; ++n)
    for (std::int64_t p = 0; p < g.p; ++p)
      for (std::int64_t q = 0; q < g.q; ++q)
        for (std::int64_t k = 0; k < g.k; ++k) {
          double sum = 0;
          for (std::int64_t r = 0; r < g.r; ++r)
            for (std::int64_t s = 0; s < g.s; ++s)
              for (std::int64_t c = 0; c < g.c; ++c) {
                const std::int64_t i = p * g.stride + r - g.pad, j = q * g.stride + s - g.pad;
                if (i < 0 || i >= g.h || j < 0 || j >= g.w) continue;
                sum += x[static_cast<std::size_t>(((n * g.h + i) * g.w + j) * g.c + c)] *
                       w[static_cast<std::size_t>(((k * g.r + r) * g.s + s) * g.c + c)];
              }
          y.push_back(sum);
        }
  return y;
}

TEST(Conv2d, IsTheFormulaTermByTerm) {
  for (const std::int64_t kernel : {1, 2, 3, 5})
    for (const std::int64_t stride : {1, 2, 3})
      for (const std::int64_t pad : {0, 1, 2})
        for (const std::int64_t filters : {1, 7, 32, 50}) {
          Graph graph(DType::kF64);
          const Value x = graph.input("x", {{2, 6, 19, 3}, DType::kF64});
          const Value y = conv2d(
              x,
              {.name = "conv", .filters = filters, .kernel = kernel, .stride = stride, .pad = pad});
          GraphRunner runner(graph);
          runner.fill_parameters(-1, 1);
          runner.fill_uniform(x.id, -1, 1, 9);
          runner.run();
          const Value w{&graph, graph.parameters()[0].value};
          const Conv2dGeometry g = conv2d_geometry(x.shape(), w.shape(), graph.ops()[0].attributes);
          ASSERT_EQ(y.shape(), (Shape{g.n, g.p, g.q, g.k}));
          const double tolerance =
              std::numeric_limits<double>::epsilon() * static_cast<double>(3 * kernel * kernel);
          expect_close(runner.get(y.id), reference(runner.get(x.id), runner.get(w.id), g),
                       tolerance,
                       fmt::format("kernel {}, stride {}, pad {}, {} filters", kernel, stride, pad,
                                   filters));
        }
}

TEST(Conv2d, FusedWithBiasAndReluIsTheSameBytes) {
  for (const DType dtype : {DType::kF32, DType::kF64})
    for (const std::int64_t filters : {1, 5, 16, 40, 64})
      for (const int threads : {1, 2}) {
        Graph graph(dtype);
        const Value x = graph.parameter("x", {3, 5, 17, 4}, {});
        const Value linear =
            bias(conv2d(x, {.name = "conv", .filters = filters, .kernel = 3, .pad = 1}), "conv");
        const Value rectified = relu(linear);
        const Value w{&graph, graph.parameters()[1].value}, b{&graph, graph.parameters()[2].value};
        Attributes attributes = graph.ops()[0].attributes;
        const Value fused_linear = graph.add("conv2d", "fused", {x, w, b}, attributes);
        attributes.set("relu", std::int64_t{1});
        const Value fused_rectified = graph.add("conv2d", "fused_relu", {x, w, b}, attributes);
        GraphRunner runner(graph, {.threads = threads});
        runner.fill_parameters(-1, 1);
        runner.run();
        EXPECT_EQ(runner.get(fused_linear.id), runner.get(linear.id));
        EXPECT_EQ(runner.get(fused_rectified.id), runner.get(rectified.id));
      }
}

TEST(Conv2d, FiltersAreStoredChannelsFirstInFiles) {
  Graph graph(DType::kF32);
  conv2d(graph.input("x", {{1, 8, 8, 3}, DType::kF32}),
         {.name = "conv", .filters = 5, .kernel = 2});
  const Parameter& filters = graph.parameters()[0];
  EXPECT_EQ(filters.name, "conv.weight");
  EXPECT_EQ(graph.value(filters.value).type.shape, (Shape{5, 2, 2, 3}));
  EXPECT_EQ(filters.file.view, (Shape{5, 2, 2, 3}));
  EXPECT_THAT(filters.file.order, ElementsAre(0, 3, 1, 2));
  EXPECT_EQ(filters.file.file, (Shape{5, 3, 2, 2}));
  EXPECT_EQ(filters.init.kind, Init::Kind::kUniform);
  EXPECT_DOUBLE_EQ(filters.init.scale, 1 / std::sqrt(12.0));
}

TEST(Conv2d, CostsTwoFlopsATerm) {
  Graph graph(DType::kF32);
  conv2d(graph.input("x", {{2, 6, 6, 3}, DType::kF32}),
         {.name = "conv", .filters = 5, .kernel = 3, .stride = 2});
  const Op& op = graph.ops()[0];
  const Cost cost = op.definition->cost(graph.signature(op));
  EXPECT_EQ(cost.flops, 2.0 * (2 * 2 * 2 * 5) * (3 * 3 * 3));
  EXPECT_EQ(cost.bytes, 4.0 * (2 * 6 * 6 * 3 + 5 * 3 * 3 * 3 + 2 * 2 * 2 * 5));
}

void expect_refused(const Shape& x, const Conv2d& layer, std::string_view reason) {
  Graph graph(DType::kF32);
  const Value input = graph.input("pixels", {x, DType::kF32});
  try {
    conv2d(input, layer);
    FAIL() << "a layer that does not fit is accepted: " << reason;
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("layer 'stem'"), HasSubstr("pixels " + x.to_string()),
                                    HasSubstr(std::string(reason))));
  }
}

TEST(Conv2d, NamesTheLayerAndShapesThatDoNotFit) {
  expect_refused({2, 9}, {.name = "stem", .filters = 4}, "needs images");
  expect_refused({2, 3, 3, 1}, {.name = "stem", .filters = 4, .kernel = 6, .pad = 1},
                 "larger than the image");
  expect_refused({2, 3, 3, 1}, {.name = "stem", .filters = 4, .kernel = 3, .stride = 0}, "stride");
  expect_refused({2, 3, 3, 1}, {.name = "stem", .filters = 4, .kernel = 3, .pad = -1}, "pad");
  expect_refused({2, 3, 3, 1}, {.name = "stem", .filters = 0, .kernel = 3}, "filters");
  expect_refused({2, 3, 3, 1}, {.name = "stem", .filters = 4, .kernel = 0}, "kernel");
}

TEST(Conv2d, RefusesFiltersForAnotherNumberOfChannels) {
  Graph graph(DType::kF32);
  const Conv2d layer{.name = "shared", .filters = 4, .kernel = 3};
  conv2d(graph.input("a", {{2, 8, 8, 3}, DType::kF32}), layer);
  EXPECT_THROW(conv2d(graph.input("b", {{2, 8, 8, 5}, DType::kF32}), layer), ConfigError);
}

}  // namespace
}  // namespace ddp::test
