#include "core/data/inspection.h"

#include "core/data/cifar_dataset.h"
#include "core/data/find_set.h"
#include "core/data/idx_dataset.h"
#include "core/data/labels.h"
#include "core/data/stats.h"

namespace ddp {

namespace {

void find_empty_classes(Inspection& into, Split split) {
  const Samples& samples = into.samples(split);
  if (into.set.classes == 0 || samples.labels.empty()) return;
  const std::vector<std::int64_t> counts = class_counts(samples, into.set.classes);
  std::vector<std::int64_t> empty;
  for (std::size_t c = 0; c < counts.size(); ++c)
    if (counts[c] == 0) empty.push_back(static_cast<std::int64_t>(c));
  if (empty.empty()) return;
  const bool from_one = empty.size() == 1 && empty[0] == 0;
  into.warn(into.set.directory.string(), "no {} sample is of class {}{}", name_of(split),
            first_few(empty),
            from_one ? "; are the labels counted from 1? Then take 1 from each" : "");
}

void find_repetitions(Inspection& into, Split split) {
  const Samples& samples = into.samples(split);
  if (samples.count() < 2) return;
  const std::string directory = into.set.directory.string();
  if (split_stats(samples, into.set.classes).duplicates == samples.count() - 1)
    return into.warn(directory, "all {} {} images are the same; nothing can be learnt from them",
                     samples.count(), name_of(split));
  if (const auto pair = contradiction(samples))
    into.warn(directory,
              "{} samples {} and {} are the same image with the labels {} and {}; one of them is "
              "wrong",
              name_of(split), pair->second, pair->first,
              samples.labels[static_cast<std::size_t>(pair->second)],
              samples.labels[static_cast<std::size_t>(pair->first)]);
}

void find_shared_images(Inspection& into) {
  const std::vector<std::int64_t> shared = shared_images(into.train, into.validation);
  if (shared.empty()) return;
  into.warn(into.set.directory.string(),
            "{} of the {} validation images are training images too (validation samples {}); the "
            "accuracy on them says nothing about new images",
            shared.size(), into.validation.count(), first_few(shared));
}

}  // namespace

Inspection inspect_data(const std::string& data, int classes) {
  Inspection inspection{.set = find_set(data), .train = {}, .validation = {}};
  if (classes > 0) inspection.set.classes = classes;
  if (inspection.set.format == SetFormat::kIdx)
    inspect_idx(inspection);
  else
    inspect_cifar(inspection);
  for (const Split split : {Split::kTrain, Split::kValidation})
    find_empty_classes(inspection, split);
  for (const Split split : {Split::kTrain, Split::kValidation}) find_repetitions(inspection, split);
  find_shared_images(inspection);
  return inspection;
}

}  // namespace ddp
