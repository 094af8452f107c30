#include "core/config/batch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "core/base/error.h"

namespace ddp {
namespace {

constexpr std::int64_t kDefaultGlobalBatch = 128;
constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();

/// The multiples of `unit` at or around `n`, the smaller first.
std::vector<std::int64_t> nearest_multiples(std::int64_t n, std::int64_t unit) {
  const std::int64_t below = n / unit * unit;
  if (below == n) return {n};
  if (below == 0) return {unit};
  return {below, below + unit};
}

/// The divisors of `n` around `wanted`, the smaller first.
std::vector<std::int64_t> nearest_divisors(std::int64_t n, std::int64_t wanted) {
  std::int64_t below = 1, above = n;
  for (std::int64_t i = 1; i * i <= n; ++i) {
    if (n % i != 0) continue;
    for (const std::int64_t divisor : {i, n / i}) {
      if (divisor <= wanted) below = std::max(below, divisor);
      if (divisor >= wanted) above = std::min(above, divisor);
    }
  }
  if (below == above) return {below};
  return {below, above};
}

/// The micro-batch whose multiple of `unit` is nearest to the default global batch.
std::int64_t default_micro_batch(std::int64_t unit) {
  return std::max<std::int64_t>(1, (kDefaultGlobalBatch + unit / 2) / unit);
}

/// global / (ranks x factor). `factor` is the size in field `field_number`, or accum 1 if that is
/// not set.
std::int64_t divide_global(const Configuration& configuration, int ranks, std::int64_t factor,
                           int field_number) {
  const std::int64_t global = configuration.values.global_batch(), unit = ranks * factor;
  if (global % unit == 0) return global / unit;
  const ConfigField& field = config_field(field_number);
  const bool asked = is_set(configuration.values, field);
  std::string advice =
      fmt::format("--global-batch {}", fmt::join(nearest_multiples(global, unit), " or "));
  if (asked && global % ranks == 0)
    advice += fmt::format(", or {} {}", flag_name(field),
                          fmt::join(nearest_divisors(global / ranks, factor), " or "));
  throw ConfigError("{} is not divisible by {} ranks x {}; nearest: {}",
                    describe_value(configuration, TrainConfig::kGlobalBatchFieldNumber), ranks,
                    asked ? describe_value(configuration, field_number) : "accum 1", advice);
}

std::int64_t product(int ranks, std::int64_t micro, std::int64_t accum) {
  // Each factor is below 2^31, but the product of three may not fit.
  if (micro * accum > kLargest / ranks)
    throw ConfigError(
        "{} ranks x micro-batch {} x accum {} is a global batch above {}; take smaller ones", ranks,
        micro, accum, kLargest);
  return ranks * micro * accum;
}

}  // namespace

BatchSizes resolve_batch(const Configuration& configuration, int ranks) {
  const TrainConfig& values = configuration.values;
  const auto describe = [&](int field) { return describe_value(configuration, field); };
  const std::int64_t accum = values.has_accum() ? values.accum() : 1;
  if (!values.has_micro_batch()) {
    if (values.has_global_batch())
      return {values.global_batch(),
              divide_global(configuration, ranks, accum, TrainConfig::kAccumFieldNumber), accum};
    const std::int64_t micro = default_micro_batch(ranks * accum);
    return {product(ranks, micro, accum), micro, accum};
  }
  const std::int64_t micro = values.micro_batch();
  if (values.has_global_batch() && !values.has_accum())
    return {values.global_batch(), micro,
            divide_global(configuration, ranks, micro, TrainConfig::kMicroBatchFieldNumber)};
  const std::int64_t global = product(ranks, micro, accum);
  if (values.has_global_batch() && values.global_batch() != global)
    throw ConfigError("{} contradicts {} x {} x {} ranks = {}; leave one of the three out",
                      describe(TrainConfig::kGlobalBatchFieldNumber),
                      describe(TrainConfig::kMicroBatchFieldNumber),
                      describe(TrainConfig::kAccumFieldNumber), ranks, global);
  return {global, micro, accum};
}

}  // namespace ddp
