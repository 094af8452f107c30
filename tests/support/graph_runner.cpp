#include "tests/support/graph_runner.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <set>

#include "core/base/philox.h"
#include "core/tensor/bfloat16.h"

namespace ddp::test {
namespace {

constexpr int kPoison = 0xFF;
constexpr std::align_val_t kAlignment{64};

// Calls f with a pointer of the element type.
template <class F>
void visit_elements(const TensorView& view, const F& f) {
  switch (view.type.dtype) {
    case DType::kF32: return f(view.as<float>());
    case DType::kF64: return f(view.as<double>());
    case DType::kU8: return f(view.as<std::uint8_t>());
    case DType::kI32: return f(view.as<std::int32_t>());
    case DType::kI64: return f(view.as<std::int64_t>());
    case DType::kBF16: return f(view.as<BFloat16>());
  }
}

}  // namespace

GraphRunner::GraphRunner(const Graph& graph, RunOptions options)
    : graph_(graph), backend_(options.backend), views_(graph.values().size()) {
  place_values(options.in_place);
  std::size_t workspace = 0;
  const BackendKind kind = backend_ ? backend_->kind() : BackendKind::kCpu;
  const KernelContext context =
      backend_ ? backend_->kernel_context() : KernelContext{.threads = options.threads};
  for (std::size_t i = 0; i < graph.ops().size(); ++i) {
    const Op& op = graph.ops()[i];
    if (op.definition->is_view) continue;
    Step step{.inputs = {}, .outputs = {}, .kernel = {}, .op = OpId(i)};
    for (ValueId id : op.inputs) step.inputs.push_back(view(id));
    for (ValueId id : op.outputs) step.outputs.push_back(view(id));
    step.kernel = kernel_factory(kind, op.definition->name)(graph.signature(op), context);
    workspace = std::max(workspace, step.kernel.workspace_bytes);
    steps_.push_back(std::move(step));
  }
  workspace_ = exact_buffer(workspace);
  if (backend_) device_state_ = exact_buffer(sizeof(StepState));
}

// Exactly as many bytes as asked for, so that AddressSanitizer and compute-sanitizer see a kernel
// that goes beyond.
Buffer GraphRunner::exact_buffer(std::size_t bytes) const {
  Buffer buffer;
  if (backend_ != nullptr)
    buffer = backend_->allocate(std::max<std::size_t>(bytes, 1));
  else
    buffer = {::operator new(std::max<std::size_t>(bytes, 1), kAlignment), bytes,
              [](void* data) { ::operator delete(data, kAlignment); }};
  poison(buffer.data(), bytes);
  return buffer;
}

void GraphRunner::write(void* to, const void* from, std::size_t bytes) const {
  if (backend_ != nullptr)
    backend_->upload(to, from, bytes);
  else
    std::memcpy(to, from, bytes);
}

void GraphRunner::poison(std::byte* memory, std::size_t bytes) const {
  const std::vector<std::byte> pattern(bytes, std::byte{kPoison});
  write(memory, pattern.data(), bytes);
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
    if (written_by_op_[i]) poison(buffers_[i].data(), buffers_[i].size());
  for (const Step& step : steps_)
    if (!forward_only || graph_.op(step.op).phase == Phase::kForward) run_step(step);
}

void GraphRunner::run_op(OpId id) {
  const auto step = std::ranges::find(steps_, id, &Step::op);
  DDP_CHECK(step != steps_.end(), "a view has no kernel to run");
  for (const TensorView& output : step->outputs)
    if (std::ranges::find(step->inputs, output.data, &TensorView::data) == step->inputs.end())
      poison(static_cast<std::byte*>(output.data), output.bytes());
  run_step(*step);
}

void GraphRunner::run_step(const Step& step) {
  poison(workspace_.data(), workspace_.size());
  StepState* where = &state;
  if (backend_ != nullptr) {
    where = reinterpret_cast<StepState*>(device_state_.data());
    write(where, &state, sizeof(state));
  }
  step.kernel.run({.inputs = step.inputs,
                   .outputs = step.outputs,
                   .workspace = {workspace_.data(), step.kernel.workspace_bytes},
                   .state = where,
                   .stream = backend_ ? &backend_->compute() : nullptr});
  if (backend_ != nullptr) backend_->download(&state, where, sizeof(state));
}

ValueId GraphRunner::id(std::string_view name) const {
  const auto found = std::ranges::find(graph_.values(), name, &ValueInfo::name);
  DDP_CHECK(found != graph_.values().end(), "the graph has no value '{}'", name);
  return ValueId(static_cast<std::size_t>(found - graph_.values().begin()));
}

std::vector<double> GraphRunner::get(ValueId id) const {
  TensorView host = view(id);
  std::vector<std::byte> copy;
  if (backend_ != nullptr) {
    copy.resize(host.bytes());
    backend_->download(copy.data(), host.data, copy.size());
    host.data = copy.data();
  }
  std::vector<double> elements(static_cast<std::size_t>(host.type.elements()));
  visit_elements(host, [&](const auto* data) {
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<double>(data[i]);
  });
  return elements;
}

void GraphRunner::set(ValueId id, std::span<const double> elements) {
  DDP_CHECK(static_cast<std::int64_t>(elements.size()) == view(id).type.elements(),
            "'{}' has {} elements, the test sets {}", graph_.value(id).name,
            view(id).type.elements(), elements.size());
  std::vector<std::byte> bytes(view(id).bytes());
  visit_elements({bytes.data(), view(id).type}, [&](auto* data) {
    for (std::size_t i = 0; i < elements.size(); ++i)
      data[i] = static_cast<std::remove_reference_t<decltype(*data)>>(elements[i]);
  });
  write(view(id).data, bytes.data(), bytes.size());
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

void fill_as_a_data_set(const Graph& graph, GraphRunner& runner) {
  runner.state.step = 1;
  for (std::size_t i = 0; i < graph.values().size(); ++i) {
    const ValueInfo& value = graph.values()[i];
    if (value.role == ValueRole::kBuffer) runner.fill_uniform(ValueId(i), 0.5, 2, i);
    if (value.role != ValueRole::kInput) continue;
    std::vector<double> elements(static_cast<std::size_t>(value.type.elements()));
    const int range = value.type.dtype == DType::kU8 ? 256 : value.name == "labels" ? 10 : 1000;
    for (std::size_t e = 0; e < elements.size(); ++e)
      elements[e] = static_cast<double>((e * 37 + 11) % static_cast<std::size_t>(range));
    if (value.name == "weights") {
      std::ranges::fill(elements, 1.0);
      elements.back() = 0;
    }
    runner.set(ValueId(i), elements);
  }
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
