#include "comm/bucket_plan.h"

#include <algorithm>
#include <cmath>

namespace ddp::comm {
namespace {

/// Largest share of a full bucket's time that may go into the constant cost of the call.
constexpr double kAlphaShare = 0.15;
/// The last bucket holds at most this part of a full one, unless a single parameter is larger.
constexpr std::size_t kLastBucketDivisor = 4;

/// k buckets of n / k bytes cost k alpha in calls, and the last of them, (n / k) beta, is exposed:
/// the sum is smallest at n / k = sqrt(n alpha / beta). Small models stay above the size at which
/// alpha is kAlphaShare of a call.
double best_bucket_bytes(double total, const LinkModel& link) {
  const double latency_bytes = link.alpha / link.beta;
  return std::max(std::sqrt(total * latency_bytes),
                  latency_bytes * (1 - kAlphaShare) / kAlphaShare);
}

}  // namespace

std::vector<BucketRange> bucket_plan(const ReadyList& ready, const LinkModel& link,
                                     const BucketLimits& limits) {
  if (ready.empty()) return {};
  const auto bytes_of = [&](std::size_t i) { return ready[i].elements * limits.element_bytes; };
  std::size_t total = 0;
  for (std::size_t i = 0; i < ready.size(); ++i) total += bytes_of(i);
  const std::size_t limit =
      limits.bytes > 0
          ? limits.bytes
          : static_cast<std::size_t>(best_bucket_bytes(static_cast<double>(total), link));

  std::size_t last = ready.size() - 1;
  std::size_t last_bytes = bytes_of(last);
  while (last > 0 && last_bytes + bytes_of(last - 1) <= limit / kLastBucketDivisor)
    last_bytes += bytes_of(--last);

  std::vector<BucketRange> buckets;
  std::size_t begin = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < last; ++i) {
    if (i > begin && bytes + bytes_of(i) > limit) {
      buckets.push_back({begin, i});
      begin = i;
      bytes = 0;
    }
    bytes += bytes_of(i);
  }
  if (begin < last) buckets.push_back({begin, last});
  buckets.push_back({last, ready.size()});
  return buckets;
}

}  // namespace ddp::comm
