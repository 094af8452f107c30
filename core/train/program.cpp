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

Plan micro_step_plan(const Graph& graph, const SlabLayout& layout, const ProgramOptions& options,
                     MicroStep micro_step) {
  return make_train_plan(
      {.graph = &graph, .layout = &layout, .backend = options.backend, .kernels = options.kernels},
      {.micro_step = micro_step,
       .world_size = options.world_size,
       .overlap = options.overlap,
       .optimizer = options.optimizer});
}

SlabLayout layout_of(const Graph& graph, const ProgramOptions& options) {
  const ReadyList ready = ready_list(graph);
  return slab_layout(graph, ready, options.buckets(ready), options.world_size);
}

}  // namespace

Plan first_plan_without_recomputation(ProgramOptions options) {
  options.recompute = false;
  const std::unique_ptr<Graph> graph = make_training_graph(options);
  return micro_step_plan(*graph, layout_of(*graph, options), options,
                         {.first = true, .last = options.accum == 1});
}

Program::Program(ProgramOptions options) : options_(std::move(options)) {
  train_graph_ = make_training_graph(options_);
  EvaluationGraph evaluation = make_evaluation_graph(options_);
  evaluation_graph_ = std::move(evaluation.graph);
  layout_ = layout_of(*train_graph_, options_);
  const auto plan_of = [&](MicroStep micro_step) {
    return micro_step_plan(*train_graph_, layout_, options_, micro_step);
  };
  if (options_.accum == 1) {
    only_ = plan_of({.first = true, .last = true});
  } else {
    first_ = plan_of({.first = true, .last = false});
    inner_ = plan_of({.first = false, .last = false});
    last_ = plan_of({.first = false, .last = true});
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
