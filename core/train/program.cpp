#include "core/train/program.h"

#include "core/graph/differentiate.h"
#include "core/ops/augment/augment.h"
#include "core/ops/fill/fill.h"
#include "core/ops/loss/loss.h"
#include "core/plan/fuse.h"
#include "core/plan/hash.h"
#include "core/plan/recompute.h"
#include "core/plan/slab.h"

namespace ddp {
namespace {

struct Inputs {
  Value images, labels, weights, sample_ids;
};

/// The same inputs in the same order in every graph, for `n` samples.
Inputs add_inputs(Graph& graph, const ProgramOptions& options, std::int64_t n) {
  const Shape& image = options.image;
  return {.images = graph.input("images", {Shape{n, image[0], image[1], image[2]}, DType::kU8}),
          .labels = graph.input("labels", {Shape{n}, DType::kI32}),
          .weights = graph.input("weights", {Shape{n}, DType::kF32}),
          .sample_ids = graph.input("sample_ids", {Shape{n}, DType::kI64})};
}

ModelInputs model_inputs(Value images, const Inputs& in) {
  return {.images = images, .sample_ids = in.sample_ids, .sample_weights = in.weights};
}

std::unique_ptr<Graph> make_training_graph(const ProgramOptions& options) {
  auto graph = std::make_unique<Graph>(options.compute);
  const Inputs in = add_inputs(*graph, options, options.micro_batch);
  const Value images = augment(in.images, in.sample_ids,
                               {.normalize = {.mean = options.mean, .stddev = options.stddev},
                                .crop_pad = options.crop_pad,
                                .flip = options.flip,
                                .seed = options.seed});
  const Value logits = options.model(*graph, model_inputs(images, in), /*training=*/true);
  const Value losses = softmax_cross_entropy(logits, in.labels, in.weights,
                                             {.label_smoothing = options.label_smoothing});
  score(losses, logits, in.labels, in.weights, /*exact=*/false);
  const Value seed =
      fill(*graph, "loss_seed", losses.type(), 1.0 / options.optimizer.finish.nominal);
  differentiate(*graph, losses, seed);
  fuse_epilogues(*graph);
  if (options.recompute && graph->block_count() == 0)
    throw ConfigError("--recompute block: this model has no blocks that could be computed again");
  if (options.recompute) recompute_blocks(*graph);
  return graph;
}

struct EvaluationGraph {
  std::unique_ptr<Graph> graph;
  std::vector<ValueId> outputs;  ///< see OutputIndex
};

EvaluationGraph make_evaluation_graph(const ProgramOptions& options) {
  auto graph = std::make_unique<Graph>(options.compute);
  const Inputs in = add_inputs(*graph, options, options.evaluation_batch);
  const Value images = normalize(in.images, {.mean = options.mean, .stddev = options.stddev});
  const Value logits = options.model(*graph, model_inputs(images, in), /*training=*/false);
  score(softmax_cross_entropy(logits, in.labels, in.weights, {}), logits, in.labels, in.weights,
        /*exact=*/true);
  const Value predictions = predict(logits);
  fuse_epilogues(*graph);
  return {.graph = std::move(graph), .outputs = {logits.id, predictions.id}};
}

/// The slab layout follows the training graph; the evaluation graph finds its parameters in it by
/// name.
SlabLayout layout_for(const SlabLayout& training, const Graph& graph) {
  SlabLayout layout = training;
  for (SlabSegment& segment : layout.segments) {
    bool found = false;
    for (std::size_t i = 0; i < graph.parameters().size(); ++i)
      if (graph.parameters()[i].name == segment.name) {
        segment.parameter = ParamId(i);
        found = true;
      }
    DDP_CHECK(found, "parameter '{}' is missing in the evaluation graph", segment.name);
  }
  return layout;
}

}  // namespace

Program::Program(ProgramOptions options) : options_(std::move(options)) {
  train_graph_ = make_training_graph(options_);
  EvaluationGraph evaluation = make_evaluation_graph(options_);
  evaluation_graph_ = std::move(evaluation.graph);
  const ReadyList ready = ready_list(*train_graph_);
  layout_ = slab_layout(*train_graph_, ready, options_.buckets(ready), options_.world_size);

  const PlanContext training{.graph = train_graph_.get(),
                             .layout = &layout_,
                             .backend = options_.backend,
                             .kernels = options_.kernels};
  const auto micro_step_plan = [&](MicroStep micro_step) {
    return make_train_plan(training, {.micro_step = micro_step,
                                      .world_size = options_.world_size,
                                      .overlap = options_.overlap,
                                      .optimizer = options_.optimizer});
  };
  if (options_.accum == 1) {
    only_ = micro_step_plan({.first = true, .last = true});
  } else {
    first_ = micro_step_plan({.first = true, .last = false});
    inner_ = micro_step_plan({.first = false, .last = false});
    last_ = micro_step_plan({.first = false, .last = true});
  }

  const SlabLayout evaluation_layout = layout_for(layout_, *evaluation_graph_);
  evaluation_ = make_evaluation_plan({.graph = evaluation_graph_.get(),
                                      .layout = &evaluation_layout,
                                      .backend = options_.backend,
                                      .kernels = options_.kernels},
                                     evaluation.outputs);
  schedule_text_ = ddp::schedule_text(*train_graph_, layout_, plans(), options_.settings);
}

const Plan& Program::micro_step(std::int64_t q) const {
  if (options_.accum == 1) return only_;
  if (q == 0) return first_;
  return q == options_.accum - 1 ? last_ : inner_;
}

std::vector<const Plan*> Program::plans() const {
  if (options_.accum == 1) return {&only_, &evaluation_};
  return {&first_, &inner_, &last_, &evaluation_};
}

}  // namespace ddp
