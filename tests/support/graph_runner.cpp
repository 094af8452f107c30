#include "tests/support/graph_runner.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <set>

#include "core/base/philox.h"

namespace ddp::test {
namespace {

constexpr int kPoison = 0xFF;
constexpr std::align_val_t kAlignment{64};

// Exactly as many bytes as asked for, so that AddressSanitizer sees a kernel that goes beyond.
Buffer exact_buffer(std::size_t bytes) {
  void* memory = ::operator new(std::max<std::size_t>(bytes, 1), kAlignment);
  std::memset(memory, kPoison, bytes);
  return {memory, bytes, [](void* data) { ::operator delete(data, kAlignment); }};
}

// Calls f with a pointer of the element type.
template <class F>
void visit_elements(const TensorView& view, const F& f) {
  switch (view.type.dtype) {
    case DType::kF32: return f(view.as<float>());
    case DType::kF64: return f(view.as<double>());
    case DType::kU8: return f(view.as<std::uint8_t>());
    case DType::kI32: return f(view.as<std::int32_t>());
    case DType::kI64: return f(view.as<std::int64_t>());
    case DType::kBF16: break;
  }
  DDP_CHECK(false, "tests do not read {}", name_of(view.type.dtype));
}

}  // namespace

GraphRunner::GraphRunner(const Graph& graph, RunOptions options)
    : graph_(graph), views_(graph.values().size()) {
  place_values(options.in_place);
  std::size_t workspace = 0;
  for (const Op& op : graph.ops()) {
    if (op.definition->is_view) continue;
    Step step{.inputs = {}, .outputs = {}, .kernel = {}, .phase = op.phase};
    for (ValueId id : op.inputs) step.inputs.push_back(view(id));
    for (ValueId id : op.outputs) step.outputs.push_back(view(id));
    step.kernel = kernel_factory(BackendKind::kCpu, op.definition->name)(
        graph.signature(op), {.threads = options.threads});
    workspace = std::max(workspace, step.kernel.workspace_bytes);
    steps_.push_back(std::move(step));
  }
  workspace_ = exact_buffer(workspace);
}

void GraphRunner::place_values(bool in_place) {
  // Storage of a value: that of its source for views, its own otherwise.
  std::vector<std::size_t> storage(graph_.values().size());
  std::vector<std::size_t> last_use(storage.size(), 0);
  for (std::size_t i = 0; i < storage.size(); ++i) storage[i] = i;
  for (std::size_t i = 0; i < graph_.ops().size(); ++i) {
    const Op& op = graph_.ops()[i];
    if (op.definition->is_view)
      storage[op.outputs[0].index()] = storage[op.inputs[0].index()];
    else
      for (ValueId id : op.inputs) last_use[storage[id.index()]] = i;
  }
  for (const Parameter& parameter : graph_.parameters())
    for (ValueId id : parameter.contributions)
      last_use[storage[id.index()]] = std::numeric_limits<std::size_t>::max();

  std::vector<std::size_t> buffer_of(storage.size());
  std::set<std::size_t> taken;  // inputs that an output has overwritten
  const auto new_buffer = [&](std::size_t value, bool written_by_op) {
    buffer_of[value] = buffers_.size();
    buffers_.push_back(exact_buffer(graph_.values()[value].type.bytes()));
    written_by_op_.push_back(written_by_op);
  };
  for (std::size_t i = 0; i < storage.size(); ++i)
    if (graph_.values()[i].role != ValueRole::kIntermediate) new_buffer(i, false);
  // An input whose buffer output `out` of op `i` may use.
  const auto dying_input = [&](const Op& op, std::size_t i, std::size_t value,
                               int out) -> std::optional<std::size_t> {
    for (const InPlace& pair : op.definition->in_place) {
      if (pair.output != out || static_cast<std::size_t>(pair.input) >= op.inputs.size()) continue;
      const std::size_t input = storage[op.inputs[static_cast<std::size_t>(pair.input)].index()];
      const auto users = std::ranges::count_if(
          op.inputs, [&](ValueId id) { return storage[id.index()] == input; });
      if (graph_.values()[input].role == ValueRole::kIntermediate && last_use[input] == i &&
          users == 1 && !taken.contains(input) &&
          graph_.values()[input].type.bytes() == graph_.values()[value].type.bytes())
        return input;
    }
    return std::nullopt;
  };
  for (std::size_t i = 0; i < graph_.ops().size(); ++i) {
    const Op& op = graph_.ops()[i];
    for (std::size_t out = 0; out < op.outputs.size(); ++out) {
      const std::size_t value = op.outputs[out].index();
      if (storage[value] != value) continue;
      const std::optional<std::size_t> dying =
          in_place ? dying_input(op, i, value, static_cast<int>(out)) : std::nullopt;
      if (dying) {
        taken.insert(*dying);
        buffer_of[value] = buffer_of[*dying];
      } else {
        new_buffer(value, true);
      }
    }
  }
  for (std::size_t i = 0; i < storage.size(); ++i)
    views_[i] = {buffers_[buffer_of[storage[i]]].data(), graph_.values()[i].type};
}

void GraphRunner::run() { run_steps(false); }
void GraphRunner::run_forward() { run_steps(true); }

void GraphRunner::run_steps(bool forward_only) {
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    if (written_by_op_[i]) std::memset(buffers_[i].data(), kPoison, buffers_[i].size());
  for (const Step& step : steps_) {
    if (forward_only && step.phase != Phase::kForward) continue;
    std::memset(workspace_.data(), kPoison, workspace_.size());
    step.kernel.run({.inputs = step.inputs,
                     .outputs = step.outputs,
                     .workspace = {workspace_.data(), step.kernel.workspace_bytes},
                     .state = &state,
                     .stream = nullptr});
  }
}

ValueId GraphRunner::id(std::string_view name) const {
  const auto found = std::ranges::find(graph_.values(), name, &ValueInfo::name);
  DDP_CHECK(found != graph_.values().end(), "the graph has no value '{}'", name);
  return ValueId(static_cast<std::size_t>(found - graph_.values().begin()));
}

std::vector<double> GraphRunner::get(ValueId id) const {
  const auto n = static_cast<std::size_t>(view(id).type.elements());
  std::vector<double> elements(n);
  visit_elements(view(id), [&](const auto* data) {
    for (std::size_t i = 0; i < n; ++i) elements[i] = static_cast<double>(data[i]);
  });
  return elements;
}

void GraphRunner::set(ValueId id, std::span<const double> elements) {
  DDP_CHECK(static_cast<std::int64_t>(elements.size()) == view(id).type.elements(),
            "'{}' has {} elements, the test sets {}", graph_.value(id).name,
            view(id).type.elements(), elements.size());
  visit_elements(view(id), [&](auto* data) {
    for (std::size_t i = 0; i < elements.size(); ++i)
      data[i] = static_cast<std::remove_reference_t<decltype(*data)>>(elements[i]);
  });
}

void GraphRunner::fill_uniform(ValueId id, double low, double high, std::uint64_t seed) {
  set(id, random_numbers(view(id).type.elements(), low, high, seed));
}

void GraphRunner::fill_parameters(double low, double high, std::uint64_t seed) {
  for (const Parameter& parameter : graph_.parameters())
    fill_uniform(parameter.value, low, high, seed + parameter.value.index());
}

std::vector<double> GraphRunner::gradient(const Parameter& parameter) const {
  std::vector<double> sum(static_cast<std::size_t>(view(parameter.value).type.elements()));
  for (ValueId id : parameter.contributions) {
    const std::vector<double> part = get(id);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
  }
  return sum;
}

std::vector<double> random_numbers(std::int64_t n, double low, double high, std::uint64_t seed) {
  const PhiloxKey key = philox_key(seed, RandomStream::kSynthetic);
  std::vector<double> numbers(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const float unit = uniform_float(philox(key, 0, i, 0)[0]);
    numbers[i] = static_cast<float>(low + (high - low) * static_cast<double>(unit));
  }
  return numbers;
}

}  // namespace ddp::test
