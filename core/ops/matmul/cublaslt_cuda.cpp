#include "core/ops/matmul/cublaslt_cuda.h"

#include <limits>
#include <map>
#include <memory>
#include <mutex>

#include "core/backend/cuda/trial.h"
#include "core/ops/matmul/cublaslt_problem_cuda.h"

namespace ddp {
namespace {

using Candidate = CublasLtProblem::Candidate;

/// a, b, the bias if there is one, c.
std::vector<std::size_t> operand_bytes(const MatrixProduct& p) {
  const auto bytes = [&](std::int64_t elements) {
    return static_cast<std::size_t>(elements) * size_of(p.dtype);
  };
  std::vector<std::size_t> operands{bytes(p.matrices * p.rows * p.terms),
                                    bytes(p.matrices * p.terms * p.columns)};
  if (p.bias) operands.push_back(bytes(p.columns));
  operands.push_back(bytes(p.matrices * p.rows * p.columns));
  return operands;
}

struct Unsupported {};

/// The fastest candidate, or the first where runs must repeat; of those that let NaN pass relu.
std::optional<Candidate> choose(const CublasLtProblem& problem, const KernelContext& context) {
  const std::vector<Candidate> candidates = problem.candidates();
  const MatrixProduct& p = problem.product();
  if (candidates.empty()) return std::nullopt;
  if (context.deterministic && !p.relu) return candidates.front();
  const std::vector<std::size_t> bytes = operand_bytes(p);
  cuda::Trial trial(*context.gpu, bytes);
  std::optional<Candidate> best;
  float best_time = std::numeric_limits<float>::infinity();
  for (const Candidate& candidate : candidates) try {
      const cuda::Trial::Candidate run{
          .enqueue =
              [&](void** operands, void* workspace) {
                if (problem.enqueue({operands[0], operands[1], p.bias ? operands[2] : nullptr,
                                     operands[bytes.size() - 1]},
                                    candidate, workspace,
                                    context.gpu->compute().handle()) != CUBLAS_STATUS_SUCCESS)
                  throw Unsupported();
              },
          .workspace_bytes = candidate.workspaceSize};
      if (p.relu && !trial.passes_nan(run, 0, p.dtype)) continue;
      if (context.deterministic) return candidate;
      const float time = trial.milliseconds(run, best_time);
      if (time < best_time) {
        best_time = time;
        best = candidate;
      }
    } catch (const Unsupported&) {  // the heuristic was wrong about this one
    }
  return best;
}

/// Everything the choice depends on.
std::string key_of(const MatrixProduct& p, const KernelContext& context) {
  return fmt::format("{} {} {}x{}x{} {}{} {}{} {}{} {}", name_of(p.dtype), p.matrices, p.rows,
                     p.columns, p.terms, p.transpose_a, p.transpose_b, p.bias, p.relu, context.tf32,
                     context.deterministic, context.gpu->ordinal());
}

/// What was chosen so far in this process, so that equal products are tuned once.
class Choices {
 public:
  std::optional<Candidate> get(const CublasLtProblem& problem, const KernelContext& context) {
    const std::lock_guard lock(mutex_);
    const std::string key = key_of(problem.product(), context);
    if (const auto known = choices_.find(key); known != choices_.end()) return known->second;
    return choices_[key] = choose(problem, context);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::optional<Candidate>> choices_;
};

/// 0 where the algorithm has no such setting.
template <class T>
T configured(const Candidate& candidate, cublasLtMatmulAlgoConfigAttributes_t attribute) {
  T value{};
  std::size_t written = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoConfigGetAttribute(
      &candidate.algo, attribute, &value, sizeof(value), &written);
  return status == CUBLAS_STATUS_SUCCESS ? value : T{};
}

std::string describe(const Candidate& c) {
  return fmt::format(
      "cublaslt {} tile {} stages {} cluster {} inner {} swizzle {} custom {} split-k {}; ws {}",
      configured<std::int32_t>(c, CUBLASLT_ALGO_CONFIG_ID),
      configured<std::uint32_t>(c, CUBLASLT_ALGO_CONFIG_TILE_ID),
      configured<std::uint32_t>(c, CUBLASLT_ALGO_CONFIG_STAGES_ID),
      configured<std::uint16_t>(c, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID),
      configured<std::uint16_t>(c, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID),
      configured<std::uint32_t>(c, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING),
      configured<std::uint32_t>(c, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION),
      configured<std::int32_t>(c, CUBLASLT_ALGO_CONFIG_SPLITK_NUM), c.workspaceSize);
}

}  // namespace

std::optional<Kernel> cublaslt_product(const MatrixProduct& product, const KernelContext& context) {
  static Choices choices;
  if (product.matrices > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  const auto problem = std::make_shared<const CublasLtProblem>(product, context);
  const std::optional<Candidate> choice = choices.get(*problem, context);
  if (!choice) return std::nullopt;
  return Kernel{
      .run =
          [problem, algorithm = *choice, a = product.a, b = product.b](const KernelArgs& args) {
            const CublasLtProblem::Operands operands{
                args.inputs[a].data, args.inputs[b].data,
                problem->product().bias ? args.inputs[2].data : nullptr, args.outputs[0].data};
            cuda::check(
                problem->enqueue(operands, algorithm, args.workspace.data(), cuda::stream_of(args)),
                "cublasLtMatmul");
          },
      .workspace_bytes = choice->workspaceSize,
      .algorithm = describe(*choice)};
}

}  // namespace ddp
