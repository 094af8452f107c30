#include "core/telemetry/confusion.h"
#include "launcher/commands.h"
#include "launcher/output_file.h"
#include "launcher/print.h"
#include "launcher/scoring.h"

namespace ddp {
namespace {

void add_batch(ConfusionMatrix& confusion, const EvaluatedBatch& batch) {
  for (std::size_t i = 0; i < batch.labels.size(); ++i)
    if (batch.weights[i] != 0) confusion.add(batch.labels[i], batch.predictions[i]);
}

}  // namespace

ExitCode eval_command(Job& job) {
  agree_on_command(job);
  const ScoringRequest& request = job.command.scoring;
  const std::unique_ptr<AtomicFile> output =
      open_output(job, "--confusion", request.confusion, {".csv", ".json"});
  const Scoring scoring = prepare_scoring(job, Split::kValidation);
  ConfusionMatrix confusion(scoring.program->options().classes);
  const Evaluation evaluation =
      score(job, scoring, [&](const EvaluatedBatch& batch) { add_batch(confusion, batch); });
  job.summary.final = {.train_loss = std::nullopt,
                       .val_loss = evaluation.loss,
                       .val_top1 = evaluation.top1,
                       .val_top5 = evaluation.top5};
  job.world->sum(confusion.counts);
  const std::vector<std::string>& names = scoring.data->info().class_names;
  if (request.per_class) {
    job.summary.per_class = class_scores(confusion);
    job.summary.class_names = names;
  }
  job.phase = "saving";
  agree(*job.world, [&] {
    if (job.world->rank() != 0) return;
    if (request.per_class) print(class_table(job.summary.per_class, names));
    if (!output) return;
    output->write(request.confusion.ends_with(".json") ? confusion_json(confusion, names)
                                                       : confusion_csv(confusion, names));
    output->commit();
  });
  check_loss_is_finite(job, evaluation);
  return ExitCode::kFinished;
}

}  // namespace ddp
