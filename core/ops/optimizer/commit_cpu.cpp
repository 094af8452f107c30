#include <algorithm>

#include "core/ops/optimizer/segments.h"

namespace ddp {
namespace {

/// One output, as elements [begin, end) of all outputs laid end to end, and the contributions to it
/// in their order.
struct CommitTarget {
  std::size_t begin = 0, end = 0;
  std::size_t output = 0;
  std::vector<std::size_t> inputs;
};

std::vector<CommitTarget> commit_targets(const OpSignature& s) {
  const std::vector<double>& targets = s.attributes.list("targets");
  DDP_CHECK(targets.size() == s.inputs.size(), "commit has {} contributions and {} targets",
            s.inputs.size(), targets.size());
  std::vector<CommitTarget> table;
  std::size_t begin = 0;
  for (std::size_t output = 0; output < s.outputs.size(); ++output) {
    const std::size_t elements = static_cast<std::size_t>(s.outputs[output].elements());
    table.push_back({.begin = begin, .end = begin + elements, .output = output, .inputs = {}});
    begin += elements;
  }
  for (std::size_t input = 0; input < targets.size(); ++input) {
    const auto target = static_cast<std::size_t>(targets[input]);
    DDP_CHECK(target < table.size(), "contribution {} goes to output {} of {}", input, target,
              table.size());
    DDP_CHECK(s.inputs[input].elements() == s.outputs[target].elements() &&
                  s.inputs[input].dtype == s.outputs[target].dtype,
              "contribution {} has {} elements of {}, its output {} of {}", input,
              s.inputs[input].elements(), name_of(s.inputs[input].dtype),
              s.outputs[target].elements(), name_of(s.outputs[target].dtype));
    table[target].inputs.push_back(input);
  }
  for (const CommitTarget& target : table)
    DDP_CHECK(!target.inputs.empty(), "output {} of commit gets no contribution", target.output);
  return table;
}

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
  DDP_CHECK(!s.outputs.empty(), "commit has no outputs");
  std::vector<CommitTarget> targets = commit_targets(s);
  const bool accumulate = s.attributes.integer("accumulate") != 0;
  return s.outputs[0].dtype == DType::kF64
             ? commit<double>(std::move(targets), accumulate, context.threads)
             : commit<float>(std::move(targets), accumulate, context.threads);
}
DDP_REGISTER_CPU_KERNEL("commit", commit_factory);

}  // namespace
}  // namespace ddp
