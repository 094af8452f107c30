#include <algorithm>

#include "core/ops/optimizer/commit_targets.h"
#include "core/ops/optimizer/for_each_part_cpu.h"

namespace ddp {
namespace {

template <class T>
Kernel commit(std::vector<CommitTarget> targets, bool accumulate, int threads) {
  const auto elements = static_cast<std::int64_t>(targets.empty() ? 0 : targets.back().end);
  return {
      .run = [targets = std::move(targets), elements, accumulate, threads](const KernelArgs& args) {
        for_each_part(threads, elements, targets,
                      [&](const CommitTarget& target, std::int64_t from, std::int64_t to) {
                        const auto offset = static_cast<std::int64_t>(target.begin);
                        T* __restrict slab = args.outputs[target.output].as<T>() - offset;
                        bool store = !accumulate;
                        for (const std::size_t input : target.inputs) {
                          const T* __restrict gradient = args.inputs[input].as<T>() - offset;
                          if (store)
                            std::copy(gradient + from, gradient + to, slab + from);
                          else
                            for (std::int64_t i = from; i < to; ++i) slab[i] += gradient[i];
                          store = false;
                        }
                      });
      }};
}

Kernel commit_factory(const OpSignature& s, const KernelContext& context) {
  std::vector<CommitTarget> targets = commit_targets(s);
  const bool accumulate = s.attributes.integer("accumulate") != 0;
  return s.outputs[0].dtype == DType::kF64
             ? commit<double>(std::move(targets), accumulate, context.threads)
             : commit<float>(std::move(targets), accumulate, context.threads);
}
DDP_REGISTER_CPU_KERNEL("commit", commit_factory);

}  // namespace
}  // namespace ddp
