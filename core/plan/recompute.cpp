#include "core/plan/recompute.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <ranges>

#include "core/graph/users.h"

namespace ddp {
namespace {

/// Outputs below this part of the largest output of their op are kept.
constexpr std::size_t kSmallPart = 16;

class Recomputation {
 public:
  explicit Recomputation(Graph& graph) : graph_(graph), users_(users_of(graph)) {}

  int run() {
    std::map<std::size_t, std::vector<Op>> before;  // by position of a backward op
    for (int block = 0; block < graph_.block_count(); ++block) repeat(block, before);
    int repeated = 0;
    std::deque<Op> ops;
    for (std::size_t i = 0; i < graph_.ops().size(); ++i) {
      if (const auto found = before.find(i); found != before.end()) {
        repeated += static_cast<int>(found->second.size());
        std::ranges::move(found->second, std::back_inserter(ops));
      }
      ops.push_back(std::move(graph_.mutable_ops()[i]));
    }
    graph_.replace_ops(std::move(ops));
    return repeated;
  }

 private:
  const Op& op(std::size_t position) const { return graph_.ops()[position]; }

  /// True when `value`, an output of `producer`, outlives the forward pass anyway or costs nothing.
  bool is_kept(const Op& producer, ValueId value) const {
    std::size_t largest = 0;
    for (const ValueId output : producer.outputs)
      largest = std::max(largest, graph_.value(output).type.bytes());
    if (graph_.value(value).type.bytes() * kSmallPart <= largest) return true;
    return std::ranges::any_of(users_[value.index()], [&](OpId user) {
      const Op& reader = graph_.op(user);
      return reader.phase == Phase::kForward && reader.block != producer.block;
    });
  }

  void repeat(int block, std::map<std::size_t, std::vector<Op>>& before) {
    std::vector<std::size_t> members;
    for (std::size_t i = 0; i < graph_.ops().size(); ++i)
      if (op(i).phase == Phase::kForward && op(i).block == block) members.push_back(i);

    // Backwards through the block: an op runs again when backward, or an op that runs again, reads
    // what it does not keep.
    std::map<ValueId, bool> needed;
    std::size_t first_reader = graph_.ops().size();
    std::vector<std::size_t> again;
    for (const std::size_t i : std::views::reverse(members)) {
      bool runs_again = false;
      for (const ValueId output : op(i).outputs) {
        if (is_kept(op(i), output)) continue;
        bool read = needed[output];
        for (const OpId user : users_[output.index()])
          if (graph_.op(user).phase == Phase::kBackward) {
            read = true;
            first_reader = std::min(first_reader, user.index());
          }
        needed[output] = read;
        runs_again |= read;
      }
      if (!runs_again) continue;
      again.push_back(i);
      for (const ValueId input : op(i).inputs) needed[input] = true;
    }

    std::map<ValueId, ValueId> copies;
    const auto current = [&](ValueId value) {
      const auto found = copies.find(value);
      return found == copies.end() ? value : found->second;
    };
    for (const std::size_t i : std::views::reverse(again)) {
      Op copy = op(i);
      copy.name += ".again";
      copy.phase = Phase::kBackward;
      for (ValueId& input : copy.inputs) input = current(input);
      for (ValueId& output : copy.outputs) {
        const ValueId fresh = graph_.copy_value(output, ".again");
        if (!is_kept(op(i), output)) copies[output] = fresh;
        output = fresh;
      }
      before[first_reader].push_back(std::move(copy));
    }
    for (Op& reader : graph_.mutable_ops())
      if (reader.phase == Phase::kBackward)
        for (ValueId& input : reader.inputs) input = current(input);
  }

  Graph& graph_;
  std::vector<std::vector<OpId>> users_;
};

}  // namespace

int recompute_blocks(Graph& graph) { return Recomputation(graph).run(); }

}  // namespace ddp
