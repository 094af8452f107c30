#include <algorithm>

#include <fmt/ranges.h>

#include "core/base/class_names.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/data/inspection.h"
#include "core/data/stats.h"
#include "core/telemetry/json.h"
#include "launcher/commands.h"
#include "launcher/print.h"

namespace ddp {
namespace {

std::int64_t count_of(const Inspection& inspection, Severity severity) {
  return std::ranges::count(inspection.defects, severity, &Defect::severity);
}

std::string headline(const Inspection& inspection) {
  const ImageSet& set = inspection.set;
  return fmt::format("{}: {} training, {} validation samples, {} classes, images {}\n",
                     set.directory.string(), inspection.train.count(),
                     inspection.validation.count(), set.classes,
                     inspection.train.image.to_string());
}

std::string per_channel(const std::vector<double>& figures) {
  return fmt::format("{:.4f}", fmt::join(figures, " "));
}

Inspection inspect(const DataRequest& request) {
  if (request.data == "synthetic")
    throw ConfigError("synthetic images are generated: there are no files to look into");
  return inspect_data(request.data, request.classes);
}

/// What `data stats` prints and writes.
struct SetStats {
  const ImageSet& set;
  SplitStats train, validation;
  std::int64_t shared = 0;  ///< validation images that are training images too
};

std::string stats_text(const SetStats& stats) {
  const SplitStats &train = stats.train, &validation = stats.validation;
  std::string text = align_columns(
      {{"", "training", "validation"},
       {"samples", fmt::to_string(train.samples), fmt::to_string(validation.samples)},
       {"mean", per_channel(train.mean), per_channel(validation.mean)},
       {"standard deviation", per_channel(train.stddev), per_channel(validation.stddev)},
       {"smallest / largest class", fmt::format("{:.4f}", train.smallest_to_largest()),
        fmt::format("{:.4f}", validation.smallest_to_largest())},
       {"repeated images", fmt::to_string(train.duplicates), fmt::to_string(validation.duplicates)},
       {"also in training", "", fmt::to_string(stats.shared)}},
      "lrr");
  std::vector<std::vector<std::string>> rows{{"class", "name", "training", "validation"}};
  for (std::size_t label = 0; label < train.class_counts.size(); ++label)
    rows.push_back({fmt::to_string(label),
                    class_name(stats.set.class_names, static_cast<int>(label)),
                    fmt::to_string(train.class_counts[label]),
                    fmt::to_string(validation.class_counts[label])});
  return text + "\n" + align_columns(rows, "rlrr");
}

OrderedJson split_json(const SplitStats& split) {
  return {{"samples", split.samples},
          {"class_counts", split.class_counts},
          {"mean", split.mean},
          {"stddev", split.stddev},
          {"smallest_to_largest_class", split.smallest_to_largest()},
          {"repeated_images", split.duplicates}};
}

OrderedJson stats_json(const SetStats& stats, const Shape& image) {
  return {{"name", stats.set.name},
          {"directory", stats.set.directory.string()},
          {"image", std::vector(image.extents().begin(), image.extents().end())},
          {"classes", stats.set.classes},
          {"class_names", stats.set.class_names},
          {"train", split_json(stats.train)},
          {"validation", split_json(stats.validation)},
          {"validation_images_in_training", stats.shared}};
}

}  // namespace

ExitCode data_check_command(const DataRequest& request) {
  const Inspection inspection = inspect(request);
  std::string text;
  for (const Defect& defect : inspection.defects)
    text += fmt::format("{}: {}\n", defect.severity == Severity::kError ? "error" : "warning",
                        defect.sentence);
  const std::int64_t errors = count_of(inspection, Severity::kError);
  const std::int64_t warnings = count_of(inspection, Severity::kWarning);
  text += errors == 0 ? headline(inspection) + "no defects" : count_text(errors, "defect");
  if (warnings > 0) text += ", " + count_text(warnings, "warning");
  print(text + "\n");
  return errors == 0 ? ExitCode::kFinished : ExitCode::kData;
}

ExitCode data_stats_command(const DataRequest& request) {
  const Inspection inspection = inspect(request);
  if (const std::int64_t errors = count_of(inspection, Severity::kError); errors > 0)
    throw DataError(request.data, "has {}; 'ddptrain data check {}' lists all",
                    count_text(errors, "defect"), request.data);
  const SetStats stats{
      .set = inspection.set,
      .train = split_stats(inspection.train, inspection.set.classes),
      .validation = split_stats(inspection.validation, inspection.set.classes),
      .shared = std::ssize(shared_images(inspection.train, inspection.validation))};
  print(headline(inspection) + stats_text(stats));
  if (!request.json.empty())
    write_file_atomically(request.json,
                          to_text(stats_json(stats, inspection.train.image), 2) + "\n");
  return ExitCode::kFinished;
}

}  // namespace ddp
