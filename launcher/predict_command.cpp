#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "core/base/file.h"
#include "core/train/predictions.h"
#include "launcher/commands.h"
#include "launcher/scoring.h"

namespace ddp {
namespace {

bool is_jsonl(const std::filesystem::path& output) { return output.extension() == ".jsonl"; }

void check_output(const std::filesystem::path& output) {
  if (!output.empty() && !is_jsonl(output) && output.extension() != ".csv")
    throw ConfigError("--output {}: name a file that ends with .csv or .jsonl", output.string());
}

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw StorageError("the predictions could not be written to stdout: {}", storage_reason(errno));
}

}  // namespace

ExitCode predict_command(Job& job) {
  agree_on_command(job);
  const ScoringRequest& request = job.command.scoring;
  agree(*job.world, [&] { check_output(request.output); });
  const Scoring scoring = prepare_scoring(job, request.split);
  Predictions mine{
      .top = static_cast<std::size_t>(std::min(request.top, scoring.program->options().classes)),
      .samples = {},
      .labels = {},
      .ranked = {}};
  score(job, scoring, [&](const EvaluatedBatch& batch) { add_batch(mine, batch); });
  const Predictions all = gather(*job.world, mine);
  const std::vector<std::string>& names = scoring.data->info().class_names;
  job.phase = "saving";
  agree(*job.world, [&] {
    if (job.world->rank() != 0) return;
    const std::string text =
        is_jsonl(request.output) ? predictions_jsonl(all, names) : predictions_csv(all, names);
    if (!request.output.empty()) return write_file_atomically(request.output, text);
    job.stdout_is_taken = true;
    print(text);
  });
  return ExitCode::kFinished;
}

}  // namespace ddp
