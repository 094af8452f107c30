// Program: everything that is built before the first step, for one rank: the training and
// evaluation graphs and all plans over one slab layout. Pure: the same options give the same
// program on every rank.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/plan/build_plan.h"

namespace ddp {

/// What a model is built on.
struct ModelInputs {
  Value images;          ///< [N, H, W, C] in compute dtype
  Value sample_ids;      ///< [N] I64, what random numbers of a sample are drawn by
  Value sample_weights;  ///< [N] F32, 0 for padding, which batch norm leaves out
};
/// Builds a model and returns its logits. Graphs that are not for training have no dropout, and
/// batch norm with its running statistics.
using ModelFunction = std::function<Value(Graph& graph, const ModelInputs& inputs, bool training)>;
/// Cuts the gradients into buckets: comm::bucket_plan with its limits bound.
using BucketFunction = std::function<std::vector<BucketRange>(const ReadyList& ready)>;

struct ProgramOptions {
  ModelFunction model;
  BucketFunction buckets;
  Shape image;  ///< [H, W, C]
  int classes = 10;
  std::vector<double> mean, stddev;  ///< per channel, of pixels in [0, 1]
  std::int64_t micro_batch = 64, accum = 1;
  /// Samples of an evaluation batch. Fixed whatever the ranks and the micro-batch are, so that a
  /// sample meets the same arithmetic everywhere and an evaluation gives the same bytes.
  std::int64_t evaluation_batch = 64;
  int world_size = 1;
  DType compute = DType::kF32;
  std::uint64_t seed = 1;
  int crop_pad = 0;
  bool flip = false;
  double label_smoothing = 0;
  bool overlap = true;
  bool recompute = false;  ///< blocks of the model are computed again in backward
  OptimizerSpec optimizer;
  std::string settings;  ///< lines of the configuration that must agree on all ranks; part of the
                         ///< schedule hash
  BackendKind backend = BackendKind::kCpu;
  KernelContext kernels;
};

/// Positions of the host's inputs in Plan::inputs, the same in every plan.
struct InputIndex {
  static constexpr std::size_t kImages = 0, kLabels = 1, kWeights = 2, kSampleIds = 3;
};

/// Positions of what the host may read in Plan::outputs of the evaluation plan.
struct OutputIndex {
  static constexpr std::size_t kLogits = 0;       ///< [N, classes], in compute dtype
  static constexpr std::size_t kPredictions = 1;  ///< [N] I32, see predict()
};

class Program {
 public:
  explicit Program(ProgramOptions options);

  /// The plan of micro-step `q` in [0, accum).
  const Plan& micro_step(std::int64_t q) const;
  const Plan& evaluation() const { return evaluation_; }
  std::vector<const Plan*> plans() const;
  const Graph& graph() const { return *train_graph_; }
  const Graph& evaluation_graph() const { return *evaluation_graph_; }
  const SlabLayout& layout() const { return layout_; }
  const ProgramOptions& options() const { return options_; }
  const std::string& schedule_text() const { return schedule_text_; }

 private:
  ProgramOptions options_;
  std::unique_ptr<Graph> train_graph_, evaluation_graph_;
  SlabLayout layout_;
  Plan first_, inner_, last_,
      only_;  ///< micro-steps; with accum 1 there is `only_`, otherwise the other three
  Plan evaluation_;
  std::string schedule_text_;
};

/// The plan of micro-step 0 as it would be without recomputation: what that is measured against.
Plan first_plan_without_recomputation(ProgramOptions options);

}  // namespace ddp
