#include "core/data/stats.h"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "core/base/hash.h"

namespace ddp {

namespace {

std::vector<std::uint64_t> image_hashes(const Samples& samples) {
  std::vector<std::uint64_t> hashes;
  if (samples.images.empty()) return hashes;
  const auto bytes = static_cast<std::size_t>(samples.image.elements());
  for (std::size_t i = 0; i < static_cast<std::size_t>(samples.count()); ++i)
    hashes.push_back(hash64(std::as_bytes(std::span(samples.images).subspan(i * bytes, bytes))));
  return hashes;
}

}  // namespace

double SplitStats::smallest_to_largest() const {
  const auto [smallest, largest] = std::ranges::minmax(class_counts);
  return static_cast<double>(smallest) / static_cast<double>(largest);
}

SplitStats split_stats(const Samples& samples, int classes) {
  SplitStats stats{.samples = samples.count(),
                   .class_counts = class_counts(samples, classes),
                   .mean = {},
                   .stddev = {}};
  std::vector<ByteHistogram> histograms(static_cast<std::size_t>(samples.image[2]));
  for (std::size_t i = 0; i < samples.images.size(); ++i)
    ++histograms[i % histograms.size()][samples.images[i]];
  for (const ByteHistogram& histogram : histograms) {
    const auto [mean, stddev] = mean_and_stddev(histogram);
    stats.mean.push_back(mean);
    stats.stddev.push_back(stddev);
  }
  const std::vector<std::uint64_t> hashes = image_hashes(samples);
  const std::unordered_set<std::uint64_t> different(hashes.begin(), hashes.end());
  stats.duplicates = std::ssize(hashes) - std::ssize(different);
  return stats;
}

std::optional<std::pair<std::int64_t, std::int64_t>> contradiction(const Samples& samples) {
  const std::vector<std::uint64_t> hashes = image_hashes(samples);
  std::unordered_map<std::uint64_t, std::size_t> first;
  for (std::size_t i = 0; i < std::min(hashes.size(), samples.labels.size()); ++i) {
    const std::size_t earlier = first.try_emplace(hashes[i], i).first->second;
    if (samples.labels[earlier] != samples.labels[i])
      return std::pair(static_cast<std::int64_t>(i), static_cast<std::int64_t>(earlier));
  }
  return std::nullopt;
}

std::vector<std::int64_t> class_counts(const Samples& samples, int classes) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(classes));
  for (const std::uint8_t label : samples.labels)
    if (label < counts.size()) ++counts[label];
  return counts;
}

std::vector<std::int64_t> shared_images(const Samples& train, const Samples& validation) {
  std::vector<std::int64_t> shared;
  if (train.image != validation.image) return shared;
  const std::vector<std::uint64_t> known = image_hashes(train);
  const std::unordered_set<std::uint64_t> training(known.begin(), known.end());
  const std::vector<std::uint64_t> hashes = image_hashes(validation);
  for (std::size_t i = 0; i < hashes.size(); ++i)
    if (training.contains(hashes[i])) shared.push_back(static_cast<std::int64_t>(i));
  return shared;
}

}  // namespace ddp
