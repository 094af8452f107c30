#include "launcher/placement.h"

#include <sched.h>

#include <algorithm>

namespace ddp {
namespace {

cpu_set_t current_mask() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(0, sizeof(mask), &mask);
  return mask;
}

/// The kernel cuts the mask down to what the job's cpuset allows; a refusal leaves the old mask,
/// which is usable too.
void widen_mask() {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (unsigned core = 0; core < CPU_SETSIZE; ++core) CPU_SET(core, &all);
  sched_setaffinity(0, sizeof(all), &all);
}

bool overlap(const cpu_set_t& a, const cpu_set_t& b) {
  cpu_set_t both;
  CPU_AND(&both, &a, &b);
  return CPU_COUNT(&both) > 0;
}

}  // namespace

ThreadPlacement place_threads(World& world, bool keep_binding, int threads) {
  if (!keep_binding) widen_mask();
  const cpu_set_t mine = current_mask();
  const std::string mask(reinterpret_cast<const char*>(&mine), sizeof(mine));
  const std::vector<std::string> all = world.gather(mask + world.host_name());

  ThreadPlacement placement{
      .cores = std::max(CPU_COUNT(&mine), 1), .sharing = 0, .threads = threads};
  for (const std::string& other : all) {
    if (other.substr(sizeof(cpu_set_t)) != world.host_name()) continue;
    cpu_set_t theirs;
    std::copy_n(other.data(), sizeof(theirs), reinterpret_cast<char*>(&theirs));
    if (overlap(mine, theirs)) ++placement.sharing;
  }
  placement.sharing = std::max(placement.sharing, 1);
  if (threads == 0) placement.threads = std::max(placement.cores / placement.sharing, 1);
  return placement;
}

}  // namespace ddp
