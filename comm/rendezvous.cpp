#include "comm/rendezvous.h"

#include <algorithm>

#include "comm/polling.h"
#include "core/comm/rank_list.h"

namespace ddp::comm {
namespace {

/// What rank 0, which alone knows of all ranks, gets to say so before the others speak.
constexpr std::chrono::seconds kGrace{5};
/// More ranks than this are not described one by one.
constexpr std::size_t kDescribedRanks = 8;

}  // namespace

void Rendezvous::reach(std::string_view stage, const std::function<bool()>& done) {
  auto deadline = std::chrono::steady_clock::now() + limit_;
  if (world_.rank() != 0) deadline += kGrace;
  bool here = false;
  const auto interrupt = [&] {
    if (auto failure = world_.announced()) throw PeerFailed(*std::move(failure));
    if (std::chrono::steady_clock::now() < deadline) return;
    std::vector<int> missing = world_.missing(here ? 0 : 1);
    if (!here && std::ranges::find(missing, world_.rank()) == missing.end())
      missing.push_back(world_.rank());
    throw CommunicationError("{}: after {:g} s, {} {} not there; look at the log of {}", stage,
                             std::chrono::duration<double>(limit_).count(), described(missing),
                             missing.size() == 1 ? "is" : "are",
                             missing.size() == 1 ? "that rank" : "those ranks");
  };
  poll_until(done, interrupt);
  world_.arrive();
  here = true;
  poll_until([&] { return world_.missing().empty(); }, interrupt);
}

std::string Rendezvous::described(const std::vector<int>& ranks) const {
  const std::string list = rank_list(ranks);
  if (places_.empty() || ranks.size() > kDescribedRanks) return list;
  std::string where;
  for (const int rank : ranks) {
    where += where.empty() ? "" : "; ";
    if (ranks.size() > 1) where += fmt::format("{}: ", rank);
    where += places_[static_cast<std::size_t>(rank)];
  }
  return fmt::format("{} ({})", list, where);
}

}  // namespace ddp::comm
