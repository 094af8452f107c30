#include "core/config/difference.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/config/fields.h"

namespace ddp {
namespace {

/// "rank 0", "ranks 0-2, 5".
std::string rank_list(const std::vector<std::size_t>& ranks) {
  std::string list;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    list += list.empty() ? "" : ", ";
    list += i == last ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + list;
}

}  // namespace

std::string describe_differences(std::span<const std::string> serialized_by_rank) {
  std::vector<TrainConfig> configs(serialized_by_rank.size());
  for (std::size_t rank = 0; rank < configs.size(); ++rank)
    if (!configs[rank].ParseFromString(serialized_by_rank[rank]))
      throw CommunicationError(
          "the configuration that rank {} sent cannot be read; do all ranks run the same ddptrain?",
          rank);
  std::string differences;
  for (const ConfigField* field : config_fields()) {
    if (flag_of(*field).per_rank()) continue;
    std::vector<std::pair<std::string, std::vector<std::size_t>>> ranks_by_value;
    for (std::size_t rank = 0; rank < configs.size(); ++rank) {
      std::string value = value_text(configs[rank], *field);
      if (value.empty()) value = "unset";
      auto known = ranks_by_value.begin();
      while (known != ranks_by_value.end() && known->first != value) ++known;
      if (known == ranks_by_value.end()) known = ranks_by_value.insert(known, {value, {}});
      known->second.push_back(rank);
    }
    if (ranks_by_value.size() < 2) continue;
    differences += field->name() + ":";
    for (std::size_t i = 0; i < ranks_by_value.size(); ++i)
      differences += fmt::format("{} {} on {}", i == 0 ? "" : ";", ranks_by_value[i].first,
                                 rank_list(ranks_by_value[i].second));
    differences += '\n';
  }
  return differences;
}

}  // namespace ddp
