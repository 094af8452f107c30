#include "core/plan/describe.h"

#include <nlohmann/json.hpp>

#include "core/base/overloaded.h"
#include "core/base/text.h"

namespace ddp {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

std::string where(const Placement& placement) {
  return fmt::format("{}+{}", name_of(placement.region), placement.offset);
}

std::string parameter_names(const SlabLayout& layout, const Bucket& bucket) {
  std::string names;
  for (std::size_t s = bucket.first_segment; s < bucket.last_segment; ++s)
    names += (names.empty() ? "" : " ") + layout.segments[s].name;
  return names;
}

std::string step_line(const Step& step) {
  return std::visit(
      overloaded{
          [](const ComputeStep& s) {
            const bool has_output = !s.outputs.empty();
            return fmt::format(
                "  {:<10} {:<34} {:<30} {:<16} {:>10.2f} {:>9.2f}  {}", name_of(s.phase), s.name,
                s.kind, has_output ? s.outputs[0].type.shape.to_string() : "-", s.cost.flops / 1e6,
                s.cost.bytes / kMiB, has_output ? where(s.outputs[0]) : "-");
          },
          [](const CommStep& s) {
            return fmt::format(
                "  {:<10} {:<34} {:<30} {:<16} {:>10} {:>9.2f}  {}", "comm", s.collective.label,
                s.collective.kind == CollectiveKind::kAllReduceSum ? "all_reduce_sum" : "broadcast",
                s.range.type.elements(), "-", static_cast<double>(s.range.type.bytes()) / kMiB,
                where(s.range));
          },
          [](const WaitStep& s) {
            return fmt::format("  {:<10} {:<34}", "wait", fmt::format("event {}", s.signal));
          },
          [](const MarkStep& s) {
            return fmt::format("  {:<10} {:<34}", "mark", name_of(s.phase));
          },
      },
      step);
}

nlohmann::ordered_json step_json(const Step& step) {
  using Json = nlohmann::ordered_json;
  return std::visit(overloaded{
                        [](const ComputeStep& s) {
                          Json outputs = Json::array();
                          for (const Placement& output : s.outputs)
                            outputs.push_back({{"shape", output.type.shape.extents()},
                                               {"dtype", name_of(output.type.dtype)},
                                               {"region", name_of(output.region)},
                                               {"offset", output.offset}});
                          return Json{{"type", "compute"},
                                      {"phase", name_of(s.phase)},
                                      {"name", s.name},
                                      {"op", s.kind},
                                      {"algorithm", s.kernel.algorithm},
                                      {"flops", s.cost.flops},
                                      {"bytes", s.cost.bytes},
                                      {"workspace_bytes", s.kernel.workspace_bytes},
                                      {"outputs", std::move(outputs)}};
                        },
                        [](const CommStep& s) {
                          return Json{{"type", "comm"},
                                      {"name", s.collective.label},
                                      {"region", name_of(s.range.region)},
                                      {"offset", s.range.offset},
                                      {"bytes", s.range.type.bytes()},
                                      {"event", s.signal}};
                        },
                        [](const WaitStep& s) {
                          return Json{{"type", "wait"}, {"event", s.signal}};
                        },
                        [](const MarkStep& s) {
                          return Json{{"type", "mark"}, {"phase", name_of(s.phase)}};
                        },
                    },
                    step);
}

}  // namespace

std::string describe_plan(const Plan& plan, const Graph& graph, const SlabLayout& layout,
                          const PlanFacts& facts) {
  std::string out = fmt::format(
      "model {}, micro-batch {}, accumulation {}, {}\n\nsteps of plan '{}'\n", facts.model,
      facts.micro_batch, facts.accum, count_text(facts.ranks, "rank"), plan.name);
  out += fmt::format("  {:<10} {:<34} {:<30} {:<16} {:>10} {:>9}  {}\n", "phase", "name", "op",
                     "output", "MFLOP", "MiB", "place");
  for (const Step& step : plan.steps) out += step_line(step) + '\n';

  out += fmt::format("\nparameters {} in {} tensors\n", graph.parameter_elements(),
                     graph.parameters().size());
  for (const SlabSegment& segment : layout.segments) {
    const TensorType& type = graph.value(graph.parameters()[segment.parameter.index()].value).type;
    out += fmt::format("  {:<34} {:<16} {:>12} elements at {}\n", segment.name,
                       type.shape.to_string(), segment.elements, segment.offset);
  }

  out += "\nbuckets, in the order in which they are reduced\n";
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) {
    const Bucket& bucket = layout.buckets[b];
    out +=
        fmt::format("  {:>3} {:>10.3f} MiB  {}\n", b,
                    static_cast<double>((bucket.end - bucket.begin) * size_of(layout.dtype)) / kMiB,
                    parameter_names(layout, bucket));
  }

  const PlanMemory& memory = plan.memory;
  const auto mib = [](std::size_t bytes) { return static_cast<double>(bytes) / kMiB; };
  out += fmt::format(
      "\nmemory (MiB)\n  activations and workspace {:>10.2f}  (without reuse {:.2f}, floor "
      "{:.2f})\n"
      "  input                     {:>10.2f}\n  parameters                {:>10.2f}\n"
      "  their compute copy        {:>10.2f}\n"
      "  gradients                 {:>10.2f}\n  optimizer                 {:>10.2f}\n"
      "  running statistics        {:>10.2f}\n  averaged weights          {:>10.2f}\n"
      "  total                     {:>10.2f}\n",
      mib(memory.arena), mib(memory.arena_without_reuse), mib(memory.arena_floor),
      mib(memory.input), mib(memory.parameters), mib(memory.compute_parameters),
      mib(memory.gradients), mib(memory.optimizer), mib(memory.buffers + memory.statistics),
      mib(memory.average), mib(memory.total()));
  out +=
      fmt::format("\nper micro-step {:.3f} GFLOP, {:.1f} MiB moved at least ({:.1f} FLOP/byte)\n",
                  plan.cost.flops / 1e9, plan.cost.bytes / kMiB,
                  plan.cost.bytes > 0 ? plan.cost.flops / plan.cost.bytes : 0.0);
  if (!facts.recomputation.empty()) out += fmt::format("recomputation: {}\n", facts.recomputation);
  out +=
      fmt::format("schedule_hash {}\nkernel_hash   {}\n", facts.schedule_hash, facts.kernel_hash);
  return out;
}

std::string recomputation_line(const Plan& with, const Plan& without) {
  const double flops = with.cost.flops - without.cost.flops;
  return fmt::format(
      "activations {:.1f} MiB instead of {:.1f} MiB, {:.3f} GFLOP a micro-step more "
      "({:.1f} %)",
      static_cast<double>(with.memory.arena) / kMiB,
      static_cast<double>(without.memory.arena) / kMiB, flops / 1e9,
      100 * flops / without.cost.flops);
}

nlohmann::ordered_json plan_json(const Plan& plan, const Graph& graph, const SlabLayout& layout,
                                 const PlanFacts& facts) {
  using Json = nlohmann::ordered_json;
  const PlanMemory& memory = plan.memory;
  Json buckets = Json::array();
  for (const Bucket& bucket : layout.buckets) {
    Json names = Json::array();
    for (std::size_t s = bucket.first_segment; s < bucket.last_segment; ++s)
      names.push_back(layout.segments[s].name);
    buckets.push_back({{"offset", bucket.begin * size_of(layout.dtype)},
                       {"bytes", (bucket.end - bucket.begin) * size_of(layout.dtype)},
                       {"parameters", std::move(names)}});
  }
  Json steps = Json::array();
  for (const Step& step : plan.steps) steps.push_back(step_json(step));
  Json tensors = Json::array();
  for (const SlabSegment& segment : layout.segments)
    tensors.push_back(
        {{"name", segment.name},
         {"shape",
          graph.value(graph.parameters()[segment.parameter.index()].value).type.shape.extents()},
         {"elements", segment.elements},
         {"offset", segment.offset},
         {"decay", segment.decay}});
  return Json{{"model", facts.model},
              {"ranks", facts.ranks},
              {"micro_batch", facts.micro_batch},
              {"accum", facts.accum},
              {"parameters", graph.parameter_elements()},
              {"schedule_hash", facts.schedule_hash},
              {"kernel_hash", facts.kernel_hash},
              {"flops", plan.cost.flops},
              {"bytes", plan.cost.bytes},
              {"memory",
               {{"arena", memory.arena},
                {"arena_without_reuse", memory.arena_without_reuse},
                {"arena_floor", memory.arena_floor},
                {"input", memory.input},
                {"parameters", memory.parameters},
                {"compute_parameters", memory.compute_parameters},
                {"gradients", memory.gradients},
                {"optimizer", memory.optimizer},
                {"buffers", memory.buffers},
                {"statistics", memory.statistics},
                {"average", memory.average},
                {"total", memory.total()}}},
              {"buckets", std::move(buckets)},
              {"tensors", std::move(tensors)},
              {"steps", std::move(steps)}};
}

}  // namespace ddp
