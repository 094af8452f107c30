#include "core/plan/plan_memory.h"

#include <algorithm>
#include <optional>

namespace ddp {
namespace {

/// A block of the arena and the values that live in it.
struct Storage {
  std::size_t bytes = 0;
  std::size_t first = 0, last = 0;
  std::optional<std::size_t> overwritten_at;  ///< step whose output took it over: one output only
};

class Layout {
 public:
  Layout(const Graph& graph, const std::vector<DraftStep>& steps,
         const std::map<ValueId, Placement>& fixed, const std::vector<ValueId>& kept)
      : graph_(graph), steps_(steps), fixed_(fixed) {
    for (std::size_t s = 0; s < steps.size(); ++s)
      for (const Operand& input : steps[s].inputs)
        if (input.value.valid()) last_use_[input.value] = s;
    for (const ValueId value : kept) last_use_[value] = steps.size();
  }

  MemoryResult run() {
    for (std::size_t s = 0; s < steps_.size(); ++s)
      for (std::size_t o = 0; o < steps_[s].outputs.size(); ++o)
        if (steps_[s].outputs[o].value.valid()) place_output(s, static_cast<int>(o));

    std::vector<Lifetime> blocks;
    for (const Storage& storage : storages_)
      blocks.push_back({.bytes = storage.bytes, .first = storage.first, .last = storage.last});
    for (std::size_t s = 0; s < steps_.size(); ++s)
      blocks.push_back({.bytes = steps_[s].step.kernel.workspace_bytes, .first = s, .last = s});
    const ArenaLayout arena = plan_arena(blocks);

    MemoryResult result;
    result.placements = outside_;
    for (const auto& [value, storage] : storage_of_) {
      const TensorType& type = graph_.value(value).type;
      result.placements[value] = {
          .region = Region::kArena, .offset = arena.offsets[storage], .type = type};
      result.memory.arena_without_reuse += type.bytes();
    }
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      result.workspaces.push_back(arena.offsets[storages_.size() + s]);
      result.memory.arena_without_reuse += steps_[s].step.kernel.workspace_bytes;
    }
    result.memory.arena = arena.bytes;
    result.memory.arena_floor = arena.floor;
    return result;
  }

 private:
  void place_output(std::size_t s, int output) {
    const ValueId value = steps_[s].outputs[static_cast<std::size_t>(output)].value;
    if (const Placement* outside = viewed_outside(steps_[s])) {
      outside_[value] = {
          .region = outside->region, .offset = outside->offset, .type = graph_.value(value).type};
      return;
    }
    std::optional<std::size_t> shared = storage_to_share(s, output);
    if (shared && !steps_[s].definition->is_view) storages_[*shared].overwritten_at = s;
    if (!shared) {
      shared = storages_.size();
      storages_.push_back({.bytes = graph_.value(value).type.bytes(), .first = s, .last = s});
    }
    storage_of_[value] = *shared;
    Storage& storage = storages_[*shared];
    storage.last = std::max({storage.last, s, last_use(value)});
  }

  /// The place of a viewed input or parameter, null for every other step.
  const Placement* viewed_outside(const DraftStep& draft) const {
    if (!draft.definition->is_view) return nullptr;
    for (const auto* places : {&fixed_, &outside_})
      if (const auto found = places->find(draft.inputs[0].value); found != places->end())
        return &found->second;
    return nullptr;
  }

  /// The storage of an input that this output may use: a view's always, another's if all values in
  /// it die here.
  std::optional<std::size_t> storage_to_share(std::size_t s, int output) const {
    const DraftStep& draft = steps_[s];
    if (draft.definition->is_view) return storage_of(draft.inputs[0]);
    const ValueId value = draft.outputs[static_cast<std::size_t>(output)].value;
    for (const InPlace& pair : draft.definition->in_place) {
      const auto input = static_cast<std::size_t>(pair.input);
      if (pair.output != output || input >= draft.inputs.size()) continue;
      const std::optional<std::size_t> storage = storage_of(draft.inputs[input]);
      if (storage && storages_[*storage].overwritten_at != s && storages_[*storage].last == s &&
          storages_[*storage].bytes == graph_.value(value).type.bytes())
        return storage;
    }
    return std::nullopt;
  }

  std::optional<std::size_t> storage_of(const Operand& operand) const {
    const auto found = storage_of_.find(operand.value);
    if (found == storage_of_.end()) return std::nullopt;
    return found->second;
  }

  std::size_t last_use(ValueId value) const {
    const auto found = last_use_.find(value);
    return found == last_use_.end() ? 0 : found->second;
  }

  const Graph& graph_;
  const std::vector<DraftStep>& steps_;
  const std::map<ValueId, Placement>& fixed_;
  std::map<ValueId, std::size_t> last_use_;
  std::map<ValueId, std::size_t> storage_of_;
  std::map<ValueId, Placement> outside_;  ///< views of values outside of the arena
  std::vector<Storage> storages_;
};

}  // namespace

MemoryResult layout_memory(const Graph& graph, const std::vector<DraftStep>& steps,
                           const std::map<ValueId, Placement>& fixed,
                           const std::vector<ValueId>& kept) {
  return Layout(graph, steps, fixed, kept).run();
}

}  // namespace ddp
