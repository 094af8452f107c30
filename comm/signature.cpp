#include "comm/signature.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <vector>

#include "core/base/hash.h"
#include "core/comm/rank_list.h"

namespace ddp::comm {
namespace {

constexpr std::size_t kFields = std::tuple_size_v<Extremes> / 2;

std::string describe(const Signature& s) {
  const bool broadcast = static_cast<CollectiveKind>(s.key.kind) == CollectiveKind::kBroadcast;
  std::string text =
      fmt::format("{} \"{}\" of {} {}", broadcast ? "broadcast" : "all-reduce", s.label.data(),
                  s.key.elements, name_of(static_cast<DType>(s.key.dtype)));
  if (broadcast) text += fmt::format(" from rank {}", s.key.root);
  if (s.key.plan_sequence >= 0)
    text += fmt::format(" as collective {} of the plan", s.key.plan_sequence);
  return text;
}

}  // namespace

Signature signature_of(std::int64_t sequence, const Collective& collective,
                       const TensorType& type) {
  Signature signature;
  signature.key = {.sequence = sequence,
                   .kind = static_cast<std::int64_t>(collective.kind),
                   .root = collective.root,
                   .plan_sequence = collective.sequence,
                   .elements = type.elements(),
                   .dtype = static_cast<std::int64_t>(type.dtype),
                   .label_hash = std::bit_cast<std::int64_t>(
                       hash64(std::as_bytes(std::span(collective.label))))};
  const std::size_t length = std::min(collective.label.size(), signature.label.size() - 1);
  std::copy_n(collective.label.data(), length, signature.label.data());
  return signature;
}

Extremes extremes_of(const SignatureKey& key) {
  const auto fields = std::bit_cast<std::array<std::int64_t, kFields>>(key);
  Extremes extremes{};
  for (std::size_t i = 0; i < kFields; ++i) {
    extremes[i] = fields[i];
    extremes[kFields + i] = ~fields[i];
  }
  return extremes;
}

bool all_equal(const Extremes& maxima) {
  for (std::size_t i = 0; i < kFields; ++i) {
    if (maxima[i] != ~maxima[kFields + i]) return false;
  }
  return true;
}

std::string describe_mismatch(std::span<const Signature> by_rank) {
  struct Camp {
    std::vector<int> ranks;
    std::string posted;
  };
  std::map<SignatureKey, Camp> by_key;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    Camp& camp = by_key[by_rank[rank].key];
    camp.ranks.push_back(static_cast<int>(rank));
    camp.posted = describe(by_rank[rank]);
  }
  std::vector<Camp> camps;
  for (auto& [key, camp] : by_key) camps.push_back(std::move(camp));
  std::ranges::sort(camps, [](const Camp& a, const Camp& b) {
    return a.ranks.size() != b.ranks.size() ? a.ranks.size() > b.ranks.size() : a.ranks < b.ranks;
  });

  std::string text = fmt::format("the ranks disagree on collective {}: ", by_rank[0].key.sequence);
  for (const Camp& camp : camps)
    text += fmt::format("{}{} posted {}", &camp == &camps[0] ? "" : "; ", rank_list(camp.ranks),
                        camp.posted);
  if (2 * camps[0].ranks.size() > by_rank.size()) {
    std::vector<int> outvoted;
    for (std::size_t i = 1; i < camps.size(); ++i)
      outvoted.insert(outvoted.end(), camps[i].ranks.begin(), camps[i].ranks.end());
    std::ranges::sort(outvoted);
    text += fmt::format(". The majority is against {}", rank_list(outvoted));
  } else {
    text += ". No side has a majority";
  }
  return text + ". Start all ranks with the same program, flags and data";
}

}  // namespace ddp::comm
