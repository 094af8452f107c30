#include <algorithm>

#include "core/train/predictions.h"
#include "launcher/commands.h"
#include "launcher/output_file.h"
#include "launcher/print.h"
#include "launcher/scoring.h"

namespace ddp {
namespace {

/// Collective. Rank 0 writes the rows of all ranks to `output`, or to stdout when it is null. They
/// are never all in memory at once.
void write_rows(Job& job, const Predictions& mine, const DatasetInfo& data, AtomicFile* output,
                bool jsonl) {
  const auto write = [&](const std::string& text) {
    if (job.world->rank() != 0) return;
    output ? output->write(text) : print(text);
  };
  if (!jsonl) agree(*job.world, [&] { write(predictions_heading(mine.top)); });
  const std::int64_t piece = samples_per_piece(mine.top);
  for (std::int64_t first = 0; first < data.size; first += piece) {
    const Predictions rows = gather(*job.world, mine, first, first + piece);
    agree(*job.world, [&] {
      write(jsonl ? predictions_jsonl(rows, data.class_names)
                  : predictions_csv(rows, data.class_names));
    });
  }
  agree(*job.world, [&] {
    if (output) output->commit();
  });
}

}  // namespace

ExitCode predict_command(Job& job) {
  agree_on_command(job);
  const ScoringRequest& request = job.command.scoring;
  const std::unique_ptr<AtomicFile> output =
      open_output(job, "--output", request.output, {".csv", ".jsonl"});
  const Scoring scoring = prepare_scoring(job, request.split);
  const int classes = scoring.program->options().classes;
  agree(*job.world, [&] {
    if (request.top > classes)
      throw ConfigError("--top {} is above the {} classes of {}", request.top, classes,
                        request.weights);
  });
  Predictions mine{
      .top = static_cast<std::size_t>(request.top), .samples = {}, .labels = {}, .ranked = {}};
  const Evaluation evaluation =
      score(job, scoring, [&](const EvaluatedBatch& batch) { add_batch(mine, batch); });
  job.phase = "saving";
  job.stdout_is_taken = request.output.empty();
  write_rows(job, mine, scoring.data->info(), output.get(), request.output.ends_with(".jsonl"));
  check_loss_is_finite(job, evaluation);
  return ExitCode::kFinished;
}

}  // namespace ddp
