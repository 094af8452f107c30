#include "core/ops/optimizer/commit_targets.h"

namespace ddp {

std::vector<CommitTarget> commit_targets(const OpSignature& s) {
  DDP_CHECK(!s.outputs.empty(), "commit has no outputs");
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
                  master_dtype(s.inputs[input].dtype) == s.outputs[target].dtype,
              "contribution {} has {} elements of {}, its output {} of {}", input,
              s.inputs[input].elements(), name_of(s.inputs[input].dtype),
              s.outputs[target].elements(), name_of(s.outputs[target].dtype));
    table[target].inputs.push_back(input);
  }
  for (const CommitTarget& target : table)
    DDP_CHECK(!target.inputs.empty(), "output {} of commit gets no contribution", target.output);
  return table;
}

}  // namespace ddp
