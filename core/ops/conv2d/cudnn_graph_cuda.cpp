#include "core/ops/conv2d/cudnn_graph_cuda.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <vector>

#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include "core/backend/cuda/device.h"
#include "core/backend/cuda/trial.h"

namespace ddp {
namespace {

namespace fe = cudnn_frontend;
using fe::graph::Graph;
using fe::graph::Tensor_attributes;

constexpr int kCandidates = 8;  // later ones of the heuristics are hardly ever the fastest

/// cuDNN cannot do it; what() is its message.
struct NoPlan : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void require(const fe::error_t& status) {
  if (status.is_bad()) throw NoPlan(status.err_msg);
}

/// A tensor in memory as [n, h, w, c]. cuDNN lists extents in the order n, c, h, w and takes the
/// order of memory from the strides; filters are [k, r, s, c].
Tensor_attributes channels_last(std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t c) {
  return Tensor_attributes().set_dim({n, c, h, w}).set_stride({h * w * c, 1, w * c, c});
}

/// Sizes of the operands in bytes, inputs first, in the order of the op.
std::vector<std::size_t> operand_bytes(const Convolution& c) {
  const Conv2dGeometry& g = c.geometry;
  const std::int64_t image = g.n * g.h * g.w * g.c, filters = g.k * g.r * g.s * g.c,
                     result = g.n * g.p * g.q * g.k;
  std::vector<std::int64_t> elements;
  switch (c.pass) {
    case ConvolutionPass::kForward: elements = {image, filters}; break;
    case ConvolutionPass::kBackwardData: elements = {filters, result}; break;
    case ConvolutionPass::kBackwardFilter: elements = {image, result}; break;
  }
  if (c.bias) elements.push_back(g.k);
  elements.push_back(c.pass == ConvolutionPass::kForward        ? result
                     : c.pass == ConvolutionPass::kBackwardData ? image
                                                                : filters);
  std::vector<std::size_t> bytes;
  for (const std::int64_t n : elements)
    bytes.push_back(static_cast<std::size_t>(n) * size_of(c.dtype));
  return bytes;
}

/// The operation with the uids 1, 2, … for its operands in the order of the op.
void add_operation(Graph& graph, const Convolution& c) {
  const Conv2dGeometry& g = c.geometry;
  std::int64_t uid = 0;
  const auto input = [&](Tensor_attributes tensor) { return graph.tensor(tensor.set_uid(++uid)); };
  const auto configured = [&](auto attributes) {
    attributes.set_padding({g.pad, g.pad}).set_stride({g.stride, g.stride}).set_dilation({1, 1});
    return attributes;
  };
  const Tensor_attributes image = channels_last(g.n, g.h, g.w, g.c),
                          filters = channels_last(g.k, g.r, g.s, g.c),
                          result = channels_last(g.n, g.p, g.q, g.k);
  const auto finish = [&](const std::shared_ptr<Tensor_attributes>& output,
                          const Tensor_attributes& type) {
    output->set_output(true).set_uid(++uid).set_dim(type.get_dim()).set_stride(type.get_stride());
  };
  if (c.pass == ConvolutionPass::kForward) {
    const auto x = input(image), w = input(filters);
    auto y = graph.conv_fprop(x, w, configured(fe::graph::Conv_fprop_attributes()));
    if (c.bias)
      y = graph.pointwise(y, input(channels_last(1, 1, 1, g.k)),
                          fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD));
    if (c.relu)
      y = graph.pointwise(
          y, fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::RELU_FWD));
    finish(y, result);
  } else if (c.pass == ConvolutionPass::kBackwardData) {
    const auto w = input(filters), dy = input(result);
    finish(graph.conv_dgrad(dy, w, configured(fe::graph::Conv_dgrad_attributes())), image);
  } else {
    const auto x = input(image), dy = input(result);
    finish(graph.conv_wgrad(dy, x, configured(fe::graph::Conv_wgrad_attributes())), filters);
  }
}

/// Engines whose results are less precise than a direct sum of products in float, or differ from
/// run to run where they must not.
std::vector<fe::NumericalNote_t> unwanted_notes(const Convolution& c,
                                                const KernelContext& context) {
  using enum fe::NumericalNote_t;
  std::vector<fe::NumericalNote_t> notes{WINOGRAD, WINOGRAD_TILE_4x4, WINOGRAD_TILE_6x6,
                                         WINOGRAD_TILE_13x13, FFT};
  if (c.dtype == DType::kF32) notes.push_back(DOWN_CONVERT_INPUTS);
  if (c.dtype == DType::kF32 && !context.tf32) notes.push_back(TENSOR_CORE);
  if (context.deterministic) notes.push_back(NONDETERMINISTIC);
  return notes;
}

/// The graph with the engine configurations that may be built. Throws NoPlan.
std::shared_ptr<Graph> make_graph(const Convolution& c, const KernelContext& context) {
  auto graph = std::make_shared<Graph>();
  graph
      ->set_io_data_type(c.dtype == DType::kBF16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::FLOAT)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  // The kernel that owns this graph outlives the CUDA graph of the step.
  graph->set_cuda_graph_retention(fe::CudaGraphRetention_t::NONE);
  add_operation(*graph, c);
  require(graph->validate());
  require(graph->build_operation_graph(context.gpu->cudnn()));
  require(graph->create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}));
  graph->deselect_workspace_greater_than(static_cast<std::int64_t>(cuda::kWorkspaceLimit));
  graph->deselect_numeric_notes(unwanted_notes(c, context));
  return graph;
}

std::size_t workspace_of(const Graph& graph, std::int64_t plan) {
  std::int64_t bytes = 0;
  require(graph.get_workspace_size_plan_at_index(plan, bytes));
  return static_cast<std::size_t>(bytes);
}

/// An element of the result whose window begins inside the image.
std::int64_t element_inside(const Conv2dGeometry& g) {
  const std::int64_t inside = (g.pad + g.stride - 1) / g.stride;
  return (std::min(inside, g.p - 1) * g.q + std::min(inside, g.q - 1)) * g.k;
}

/// Name of the plan to use. Throws NoPlan.
std::string choose_plan(const Convolution& c, const KernelContext& context) {
  const std::shared_ptr<Graph> graph = make_graph(c, context);
  const cudnnHandle_t handle = context.gpu->cudnn();
  const std::vector<std::size_t> operands = operand_bytes(c);
  std::optional<cuda::Trial> trial;
  if (c.relu || !context.deterministic) trial.emplace(*context.gpu, operands);
  cuda::check(cudnnSetStream(handle, context.gpu->compute().handle()), "cudnnSetStream");

  std::set<std::string> seen;  // the fallback list repeats engines of the first list
  std::string best, failure = "no engine is as precise as asked for";
  float best_time = std::numeric_limits<float>::infinity();
  int candidates = 0;
  for (std::int64_t i = 0; i < graph->get_execution_plan_count() && candidates < kCandidates; ++i)
    try {
      std::string name;
      require(graph->get_plan_name_at_index(i, name));
      if (!seen.insert(name).second || graph->build_plan_at_index(i).is_bad()) continue;
      ++candidates;
      const cuda::Trial::Candidate candidate{
          .enqueue =
              [&](void** pointers, void* workspace) {
                require(graph->execute_plan_at_index(
                    handle, pointers, static_cast<int>(operands.size()), workspace, i));
              },
          .workspace_bytes = workspace_of(*graph, i)};
      if (c.relu && !trial->passes_nan(candidate, element_inside(c.geometry), c.dtype)) {
        failure = "no engine lets NaN pass relu";
        continue;
      }
      if (context.deterministic) return name;
      const float time = trial->milliseconds(candidate, best_time);
      if (time < best_time) {
        best_time = time;
        best = name;
      }
    } catch (const NoPlan& error) {
      failure = error.what();
    }
  if (best.empty()) throw NoPlan(failure);
  return best;
}

class PlannedConvolution final : public CudnnConvolution {
 public:
  /// Builds the plan called `name`, and no other: each holds code on the device.
  PlannedConvolution(const Convolution& c, const KernelContext& context, const std::string& name)
      : graph_(make_graph(c, context)),
        handle_(context.gpu->cudnn()),
        inputs_(operand_bytes(c).size() - 1) {
    std::string other;
    const std::int64_t plans = graph_->get_execution_plan_count();
    while (plan_ < plans &&
           (graph_->get_plan_name_at_index(plan_, other).is_bad() || other != name))
      ++plan_;
    if (plan_ == plans) throw NoPlan(fmt::format("its plan {} is gone", name));
    require(graph_->build_plan_at_index(plan_));
    workspace_bytes_ = workspace_of(*graph_, plan_);
    algorithm_ = fmt::format("cudnn {}; ws {}", name, workspace_bytes_);
  }

  void run(const KernelArgs& args) const override {
    std::array<void*, cuda::Trial::kMaxOperands> operands{};
    for (std::size_t i = 0; i < inputs_; ++i) operands[i] = args.inputs[i].data;
    operands[inputs_] = args.outputs[0].data;
    cuda::check(cudnnSetStream(handle_, cuda::stream_of(args)), "cudnnSetStream");
    const fe::error_t status = graph_->execute_plan_at_index(
        handle_, operands.data(), static_cast<int>(inputs_) + 1, args.workspace.data(), plan_);
    if (status.is_bad())
      throw DeviceError("cuDNN could not run a convolution ({}): {}", algorithm_, status.err_msg);
  }
  std::size_t workspace_bytes() const override { return workspace_bytes_; }
  std::string algorithm() const override { return algorithm_; }
  cudnnHandle_t handle() const { return handle_; }

 private:
  std::shared_ptr<Graph> graph_;
  cudnnHandle_t handle_;
  std::size_t inputs_;
  std::int64_t plan_ = 0;
  std::size_t workspace_bytes_ = 0;
  std::string algorithm_;
};

/// Everything the choice of a plan depends on.
std::string key_of(const Convolution& c, const KernelContext& context) {
  const Conv2dGeometry& g = c.geometry;
  return fmt::format("{} {} {}x{}x{}x{} {}x{}x{} {} {} {}{}{}{} {}", static_cast<int>(c.pass),
                     name_of(c.dtype), g.n, g.h, g.w, g.c, g.k, g.r, g.s, g.stride, g.pad, c.bias,
                     c.relu, context.tf32, context.deterministic, context.gpu->ordinal());
}

/// What was chosen so far. Plans belong to the kernels that use them, so that none outlives its
/// device; the choices stay.
class Choices {
 public:
  std::shared_ptr<const CudnnConvolution> get(const Convolution& c, const KernelContext& context,
                                              std::string& reason) {
    const std::lock_guard lock(mutex_);
    Choice& choice = choices_[key_of(c, context)];
    if (const auto ready = choice.ready.lock();
        ready != nullptr && ready->handle() == context.gpu->cudnn())
      return ready;
    if (choice.failure.empty()) try {
        if (choice.plan.empty()) choice.plan = choose_plan(c, context);
        auto made = std::make_shared<const PlannedConvolution>(c, context, choice.plan);
        choice.ready = made;
        return made;
      } catch (const NoPlan& error) {
        choice.failure = error.what();
      } catch (const fe::cudnnException& error) {
        choice.failure = error.what();
      }
    reason = choice.failure;
    return nullptr;
  }

 private:
  struct Choice {
    std::string plan, failure;
    std::weak_ptr<const PlannedConvolution> ready;
  };
  std::mutex mutex_;
  std::map<std::string, Choice> choices_;
};

}  // namespace

std::shared_ptr<const CudnnConvolution> cudnn_convolution(const Convolution& convolution,
                                                          const KernelContext& context,
                                                          std::string& reason) {
  DDP_CHECK(convolution.dtype == DType::kF32 || convolution.dtype == DType::kBF16,
            "there is no convolution of {} on the GPU", name_of(convolution.dtype));
  static Choices choices;
  return choices.get(convolution, context, reason);
}

}  // namespace ddp
