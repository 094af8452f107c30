#include "core/plan/hash.h"

#include "core/base/hash.h"

namespace ddp {

std::string schedule_text(const Graph& graph, const SlabLayout& layout,
                          const std::vector<const Plan*>& plans, const std::string& settings) {
  std::string text = settings;
  for (const SlabSegment& segment : layout.segments) {
    const TensorType& type = graph.value(graph.parameters()[segment.parameter.index()].value).type;
    text += fmt::format("parameter {} {} {} at {}\n", segment.name, type.shape.to_string(),
                        name_of(type.dtype), segment.offset);
  }
  for (const Op& op : graph.ops()) {
    text += fmt::format("op {} {} {} :", op.name, op.definition->name, op.attributes.to_string());
    for (ValueId input : op.inputs) {
      const ValueInfo& value = graph.value(input);
      text += fmt::format(" {} {} {}", value.name, value.type.shape.to_string(),
                          name_of(value.type.dtype));
    }
    text += '\n';
  }
  for (const Plan* plan : plans)
    for (const Step& step : plan->steps) {
      if (const auto* compute = std::get_if<ComputeStep>(&step);
          compute != nullptr && compute->phase == Phase::kOptimizer)
        text += fmt::format("update {} {} {}\n", plan->name, compute->kind,
                            compute->signature.attributes.to_string());
      if (const auto* comm = std::get_if<CommStep>(&step))
        text += fmt::format("comm {} kind {} {} {} elements {} at {}+{}\n", comm->collective.label,
                            static_cast<int>(comm->collective.kind), plan->name,
                            name_of(comm->range.type.dtype), comm->range.type.elements(),
                            name_of(comm->range.region), comm->range.offset);
    }
  return text;
}

std::string schedule_hash(const std::string& text) { return hash64_hex(text); }

std::string kernel_hash(const std::vector<const Plan*>& plans, const std::string& libraries) {
  std::string text = libraries + '\n';
  for (const Plan* plan : plans)
    for (const Step& step : plan->steps)
      if (const auto* compute = std::get_if<ComputeStep>(&step))
        text += fmt::format("{} {} {}\n", plan->name, compute->name, compute->kernel.algorithm);
  return hash64_hex(text);
}

}  // namespace ddp
